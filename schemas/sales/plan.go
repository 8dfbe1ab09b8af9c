package sales

import "github.com/sluice-platform/sluice/schemas/events/rules"

// How a plan counts the part of a period that a subscription holds.
const (
	// ProrationNone: every period is whole.
	ProrationNone = "none"
	// ProrationDays: limit (and fee) of a period by its days; a day that was
	// begun counts whole.
	ProrationDays = "days"
)

// Models of a price.
const (
	// PriceFlat: every unit costs UnitPrice.
	PriceFlat = "flat"
	// PriceGraduated: each unit costs what the tier it falls in says.
	PriceGraduated = "graduated"
	// PriceVolume: all units cost what the tier says that the last one falls in.
	PriceVolume = "volume"
)

// Plan is what is sold: rule templates and prices. Each write makes a version
// that stays as it is for ever; subscriptions name theirs.
type Plan struct {
	// ID names the plan; 1 to 128 characters.
	ID string `json:"id"`
	// Version counts the plan's own versions from 1; set by the control plane.
	Version int64  `json:"version,omitempty"`
	Name    string `json:"name,omitempty"`
	// Currency is the ISO 4217 code of all its money.
	Currency string `json:"currency"`
	// Period is what is invoiced at once: day, week, month (the default) or year.
	// With AnchorDay and WeekStart it holds for templates that name no period.
	Period    string `json:"period,omitempty"`
	AnchorDay int    `json:"anchorDay,omitempty"`
	WeekStart string `json:"weekStart,omitempty"`
	// Timezone is the IANA zone of periods; empty is each customer's.
	Timezone string `json:"timezone,omitempty"`
	// Proration is none (the default) or days.
	Proration string `json:"proration,omitempty"`
	// BaseFee is what a period costs whatever is used, a decimal such as "49.00".
	BaseFee string     `json:"baseFee,omitempty"`
	Rules   []Template `json:"rules"`
	Prices  []Price    `json:"prices,omitempty"`
}

// Template is a rule without id and subject: those are the subscription's and
// its customer's. What its quota's limit leaves out of period, anchorDay,
// weekStart and timezone is the plan's.
type Template struct {
	Name        string       `json:"name,omitempty"`
	Scope       rules.Scope  `json:"scope,omitzero"`
	Metric      string       `json:"metric"`
	Limit       *rules.Limit `json:"limit,omitempty"`
	Unlimited   bool         `json:"unlimited,omitempty"`
	Cost        *int64       `json:"cost,omitempty"`
	Mode        string       `json:"mode,omitempty"`
	OnStoreLoss string       `json:"onStoreLoss,omitempty"`
	Priority    int          `json:"priority,omitempty"`
	// CountCached, as rules have it: whether an answer from the cache is charged.
	CountCached *bool `json:"countCached,omitempty"`

	Thresholds *rules.Thresholds `json:"thresholds,omitempty"`
	RefundOn   []string          `json:"refundOn,omitempty"`
}

// Price is what the units of a metric cost, a period.
type Price struct {
	// Metric is one that a quota of the plan counts.
	Metric string `json:"metric"`
	// Model is flat, graduated or volume.
	Model string `json:"model"`
	// Included is how many units of a period cost nothing; the tiers count
	// those that follow.
	Included int64 `json:"included,omitempty"`
	// UnitPrice is of model flat: a decimal, at most 9 digits behind the point.
	UnitPrice string `json:"unitPrice,omitempty"`
	// Tiers are of the other models, in order.
	Tiers []Tier `json:"tiers,omitempty"`
}

// Tier is a stretch of units.
type Tier struct {
	// UpTo is its last unit, counted from 1; nil is of the last tier, without end.
	UpTo *int64 `json:"upTo,omitempty"`
	// UnitPrice is a decimal, at most 9 digits behind the point; empty is 0.
	UnitPrice string `json:"unitPrice,omitempty"`
	// FlatFee is due once when the tier is reached; a decimal of whole minor
	// units of the currency; empty is 0.
	FlatFee string `json:"flatFee,omitempty"`
}
