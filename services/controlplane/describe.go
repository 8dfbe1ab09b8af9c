package controlplane

import (
	"fmt"
	"slices"

	"github.com/sluice-platform/sluice/services/controlplane/internal/resource"

	"github.com/danielgtaylor/huma/v2"
)

// fieldNotes say in the contract what the shared event types, which know
// nothing of REST, cannot. A test holds that each names a field that exists.
var fieldNotes = map[string]map[string]string{
	"Rule": {
		"id":          "1 to 128 printable characters without a space at either end; made up by POST where it is left out.",
		"version":     "Grows with every change; ignored in requests.",
		"name":        "For people.",
		"subject":     "Whose use is counted.",
		"scope":       "Where the rule holds; absent is everywhere.",
		"metric":      "What is counted. Rules that share subject, metric, algorithm and window share their counter.",
		"limit":       "How much; may be absent only when unlimited is true.",
		"unlimited":   "Counts and never denies.",
		"cost":        "Overrides what a request costs; 0 to 2^53.",
		"countCached": "Whether a request that the gateway's cache answers is charged; default true.",
		"mode":        "enforce (default), shadow (counted and reported, denies nothing) or off.",
		"onStoreLoss": "When counters cannot be asked: open (default for rates), closed (default for quotas) or local (a share of the limit at each gateway).",
		"onMissing":   "For a request without the identity: skip (default), shared or deny.",
		"thresholds":  "Of quotas: where use is announced on quota-events.v1 and to webhooks; default 80 % and 100 %, {} is nowhere.",
		"refundOn":    "How a call that was let pass may fail so that its charge is given back: 5xx, timeout, error (not reachable), or single statuses 400 to 599 such as \"503\"; default none.",
		"priority":    "Decides between equally specific rules: higher wins.",
		"validFrom":   "The rule holds from this time on; at most controlplane.maxAhead (10 years by default) ahead.",
		"validUntil":  "The rule holds until this time: a new one lies at most controlplane.maxAhead ahead, and not more than controlplane.maxClockSkew in the past.",
		"origin":      "The subscription that wrote the rule, and alone may change it; ignored in requests.",
	},
	"Subject": {
		"kind":  "tenant, user, application, apiKey, service or endpoint.",
		"value": "Exact, or * for each value its own counter. Of user and application it is tenant/name. No name in it begins or ends with a space.",
	},
	"Scope": {
		"service":  "Name of a service of the catalog.",
		"endpoint": "METHOD /pattern in the syntax of net/http.ServeMux, route prefix included.",
	},
	"Limit": {
		"algorithm": "gcra, fixedWindow, slidingWindow, tokenBucket or quota.",
		"limit":     "Units per window or period; 0 lets nothing pass.",
		"window":    "Of rates: a duration such as 30s, 1m, 24h.",
		"burst":     "Capacity of a rested counter (gcra, tokenBucket); default: limit.",
		"kind":      "Of quotas: renewing, the default (limit units each period), or prepaid (a tenant's wallet: what was topped up, without limit and period).",
		"period":    "Of quotas: hour, day, week, month, year or never.",
		"timezone":  "Of quotas: an IANA name such as Europe/Istanbul; default UTC. A change takes effect at the end of the running period.",
		"anchorDay": "Of period month: the day it begins on, 1 to 31, in shorter months their last; default 1. A change takes effect as timezone's.",
		"weekStart": "Of period week: monday (default) to sunday. A change takes effect as timezone's.",
		"rollover":  "Of quotas: how many unused units of a period are carried into the next, once; default none.",
		"overdraft": "Of quotas: none (default), or once: while units are left a request passes whatever it costs.",
		"previous":  "Calendars that periods before a change are counted by; written by the control plane, ignored in requests.",
		"since":     "When the quota was first given a rollover; written by the control plane, ignored in requests.",
	},
	"Thresholds": {
		"percent":  "Of the limit, 1 to 1000.",
		"absolute": "Units used, 1 or more.",
	},
	"Calendar": {
		"timezone":  "As in limit.",
		"anchorDay": "As in limit.",
		"weekStart": "As in limit.",
		"until":     "The end of its last period: from then on the next one holds.",
	},
	"Override": {
		"id":         "Follows from subject, metric and horizon, such as tenant:acme:requests:1m; may be left out.",
		"version":    "Grows with every change; ignored in requests.",
		"reason":     "For people: why this subject is an exception.",
		"subject":    "Whose numbers change; its value is exact.",
		"metric":     "What is counted.",
		"window":     "Only for rates of this window, such as 1m.",
		"period":     "Only for quotas of this period. Without window and period: for every horizon of the metric.",
		"limit":      "In place of the rule's limit; may be absent only when unlimited is true.",
		"burst":      "In place of the rule's burst. Absent: a burst that equals the rule's limit follows the new limit, another stays.",
		"unlimited":  "Counts and never denies.",
		"validUntil": "From then on the rule's own numbers hold again. Bounded as a rule's.",
		"origin":     "The subscription that wrote the override, and alone may change it; ignored in requests.",
	},
	"Service": {
		"name":            "1 to 128 printable characters without a space at either end; the id in paths.",
		"version":         "Grows with every change; ignored in requests.",
		"prefix":          "Route prefix, such as /payments/; no other service has it. The longest prefix wins.",
		"stripPrefix":     "Forward the path without its prefix.",
		"requireKey":      "Refuse requests without a valid API key (401); short for requireIdentity key.",
		"requireIdentity": "Refuse requests without a credential of that kind (401): key, token (a JWT of an issuer the gateways are configured with) or keyOrToken. Identity headers are none.",
		"refuseStaleKeys": "Refuse requests with an API key (503) while a gateway's keys are older than its gateway.identity.maxStaleness.",
		"costHeader":      "Header of the service's answers with what the request really cost (0 to 2^53); the difference is charged or refunded, never denied. Clients do not see it.",
		"maxCost":         "The largest cost that costHeader is believed and that a reservation may have or come to, 1 to 2^53; default 1,000,000. What costHeader says above it, and above what was charged, changes nothing.",
		"legacyHeaders":   "Add X-RateLimit-Limit, -Remaining and -Reset to answers.",
		"cache":           "How gateways cache the service's answers; absent is not at all. An endpoint's own takes its place, as a whole.",
		"upstreams":       "Where requests are forwarded to; 1 to 64.",
		"endpoints":       "Costs by pattern, at most 5000; other paths under the prefix cost 1.",
	},
	"Customer": {
		"id":       "The tenant's id: 1 to 128 printable characters without slash and star, and without a space at either end.",
		"version":  "Grows with every change; ignored in requests.",
		"name":     "What invoices and people call the customer.",
		"timezone": "IANA name of the zone that periods are cut in where the plan names none; default UTC.",
		"currency": "ISO 4217 code that the customer pays in; absent takes any plan's.",
		"contact":  "Where the customer is reached, and what invoices show.",
	},
	"Contact": {
		"address": "As invoices show it, in lines.",
		"email":   "One address, without a name.",
		"taxId":   "The customer's number at the tax office.",
	},
	"Plan": {
		"id":        "1 to 128 printable characters without a space at either end.",
		"version":   "Counts the plan's own versions from 1; ignored in requests. Each stays for ever: see /v1/plans/{id}/versions.",
		"name":      "What invoices and people call the plan.",
		"currency":  "ISO 4217 code of all money in the plan, such as EUR.",
		"period":    "What is invoiced at once: day, week, month (default) or year. Also of rules that name no period.",
		"anchorDay": "As in limit; of period month.",
		"weekStart": "As in limit; of period week.",
		"timezone":  "IANA name of the zone of periods; absent is each customer's.",
		"proration": "none (default), or days: a period that is not held whole has its quotas by days, rounded up; a day begun counts whole.",
		"baseFee":   "What a period costs whatever is used: a decimal such as \"49.00\".",
		"rules":     "Templates, 1 to 32: rules without id and subject, which are the subscriber's.",
		"prices":    "What units cost; one a metric.",
	},
	"Template": {
		"metric":      "What is counted.",
		"scope":       "Where the rule holds; absent is everywhere.",
		"limit":       "How much. What a quota leaves out of period, anchorDay, weekStart and timezone is the plan's.",
		"unlimited":   "Counts and never denies.",
		"cost":        "Overrides what a request costs; 0 to 2^53.",
		"mode":        "As of a rule.",
		"onStoreLoss": "As of a rule.",
		"thresholds":  "As of a rule.",
		"refundOn":    "As of a rule.",
	},
	"Price": {
		"metric":    "One that a quota of the plan counts by the plan's period, or a prepaid one.",
		"model":     "flat, graduated (each unit by its tier) or volume (all units by the tier of the last).",
		"included":  "Units of a period that cost nothing; tiers count those that follow.",
		"unitPrice": "Of model flat: a decimal such as \"0.0004\", at most 9 digits behind the point.",
		"tiers":     "Of the other models, in order.",
	},
	"Tier": {
		"upTo":      "Its last unit; left out of the last tier.",
		"unitPrice": "A decimal, at most 9 digits behind the point.",
		"flatFee":   "Due once when the tier is reached; a decimal of whole minor units.",
	},
	"Subscription": {
		"id":                "Made by the control plane; the ids of its rules begin with it.",
		"version":           "Grows with every change; ignored in requests.",
		"customer":          "Cannot be changed.",
		"plan":              "May be changed; what was used stays used.",
		"planVersion":       "Absent is the newest.",
		"cancelAtPeriodEnd": "Ends it with the plan's running period: at endsAt.",
		"status":            "active or ended; ignored in requests.",
		"startedAt":         "Made by the control plane: in requests as GET answered it, or left out.",
		"endsAt":            "The first instant after it; in requests as startedAt.",
		"phases":            "The plan versions it has had; ignored in requests.",
	},
	"Cache": {
		"ttl":                  "How long answers are fresh that do not say, such as 30s; absent: those are not cached. At most 72h.",
		"negativeTTL":          "The same for 404 and 410; default a tenth of ttl.",
		"query":                "Which parameters tell answers apart: all (default), none or named (queryNames).",
		"queryNames":           "The parameters, where query is named.",
		"headers":              "Request headers that tell answers apart beside those of Vary, as the service sees them (X-Tenant-Id is the tenant that the gate found).",
		"staleWhileRevalidate": "How long past its freshness an answer is served while it is loaded anew, where it does not say; at most 24h.",
		"staleIfError":         "The same while the service fails.",
		"maxObjectBytes":       "Largest body that is stored, 1 to 16777216; default 1048576.",
		"tagsHeader":           "Header of the service's answers that lists an answer's tags for POST /v1/purges; clients do not see it.",
		"shared":               "Answers do not depend on whose request it is: the identity is withheld from the service, and answers are shared among all callers. Without it, answers to requests with an identity are shared only if they say public, s-maxage or must-revalidate.",
	},
	"Upstream": {
		"url":    "http:// or https:// with a host, without user, query and fragment.",
		"weight": "0 to 1000, default 1; 0 takes none.",
	},
	"Endpoint": {
		"pattern": "METHOD /path in the syntax of net/http.ServeMux, route prefix included.",
		"cost":    "Units a request, 0 to 2^53, default 1.",
		"about":   "For people.",
	},
}

// describe writes the notes into the schemas. A missing schema or field is a
// mistake of ours that the tests, which build the API too, show at once.
func describe(schemas huma.Registry) {
	for name, notes := range fieldNotes {
		schema := schemas.Map()[name]
		for field, note := range notes {
			property := schema.Properties[field]
			if property == nil {
				panic(fmt.Sprintf("describe: schema %s has no field %s", name, field))
			}
			if property.Ref != "" { // a reference may be shared: the note goes beside it
				property = &huma.Schema{AllOf: []*huma.Schema{property}}
				schema.Properties[field] = property
			}
			property.Description = note
		}
	}
	// Events are shown without it, see shown.
	delete(schemas.Map()["Event"].Properties, "reservationState")
	delete(schemas.Map(), "ReservationState")
	// Requests may leave the id to POST or to the path.
	for _, name := range []string{"Rule", "Override", "Customer", "Plan"} {
		schema := schemas.Map()[name]
		schema.Required = slices.DeleteFunc(schema.Required, func(field string) bool { return field == "id" })
	}
	resource.DescribeWritten(schemas)
}
