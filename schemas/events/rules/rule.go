package rules

import "time"

// Topic is the name of the topic, without a deployment prefix.
const Topic = "rules.v1"

// Kinds of subject: whose use is counted.
const (
	SubjectTenant      = "tenant"
	SubjectUser        = "user"
	SubjectApplication = "application"
	SubjectAPIKey      = "apiKey"
	SubjectService     = "service"
	SubjectEndpoint    = "endpoint"
)

// Algorithms.
const (
	AlgorithmFixedWindow   = "fixedWindow"
	AlgorithmSlidingWindow = "slidingWindow"
	AlgorithmTokenBucket   = "tokenBucket"
	AlgorithmGCRA          = "gcra"
	AlgorithmQuota         = "quota"
)

// Kinds of quota.
const (
	QuotaRenewing = "renewing"
	QuotaPrepaid  = "prepaid"
)

// What a quota that is nearly used up does with a request that costs more.
const (
	OverdraftNone = "none"
	OverdraftOnce = "once"
)

// Modes.
const (
	ModeEnforce = "enforce"
	ModeShadow  = "shadow"
	ModeOff     = "off"
)

// What happens to a request when the counter store cannot be asked.
const (
	StoreLossOpen   = "open"
	StoreLossClosed = "closed"
	StoreLossLocal  = "local"
)

// What happens to a request without the identity a rule counts by.
const (
	MissingSkip   = "skip"
	MissingShared = "shared"
	MissingDeny   = "deny"
)

// What of a call's failure a rule can name beside statuses ("400" to "599").
const (
	// RefundServerErrors is any answer of 500 to 599, the gate's own among them.
	RefundServerErrors = "5xx"
	// RefundTimeout is a service that did not answer in time (504 of the gate).
	RefundTimeout = "timeout"
	// RefundError is a service that could not be reached, or broke the connection
	// before its answer (502 of the gate).
	RefundError = "error"
)

// Rule is one record of rules.v1. Absent numbers are nil, since 0, unlimited
// and absent are three things.
type Rule struct {
	// ID names the rule in REST, headers and events; 1 to 128 characters.
	ID string `json:"id"`
	// Version grows with every write of any rule; set by the control plane.
	Version int64  `json:"version,omitempty"`
	Name    string `json:"name,omitempty"`
	// Subject says whose use is counted.
	Subject Subject `json:"subject"`
	// Scope says where the rule holds; empty is everywhere.
	Scope Scope `json:"scope,omitzero"`
	// Metric is what is counted. Rules that share subject, metric, algorithm
	// and window share their counter.
	Metric string `json:"metric"`
	// Limit says how much; nil only when Unlimited.
	Limit     *Limit `json:"limit,omitempty"`
	Unlimited bool   `json:"unlimited,omitempty"`
	// Cost overrides what a request costs; nil means the request's own cost.
	Cost *int64 `json:"cost,omitempty"`
	// CountCached says whether a request that the gateway's cache answers
	// without waiting for the service is charged like any other; nil is true.
	CountCached *bool `json:"countCached,omitempty"`
	// Mode is enforce, shadow or off.
	Mode        string `json:"mode,omitempty"`
	OnStoreLoss string `json:"onStoreLoss,omitempty"`
	OnMissing   string `json:"onMissing,omitempty"`
	// Thresholds are, of a quota, where its use is announced on
	// quota-events.v1; nil is DefaultThresholds, an empty one is nowhere.
	Thresholds *Thresholds `json:"thresholds,omitempty"`
	// RefundOn is how a call that was let pass may fail so that what the rule
	// charged for it is given back: 5xx, timeout, error, or single statuses such
	// as 503. Empty is never.
	RefundOn []string `json:"refundOn,omitempty"`
	// Priority decides between equally specific rules: higher wins.
	Priority   int        `json:"priority,omitempty"`
	ValidFrom  *time.Time `json:"validFrom,omitempty"`
	ValidUntil *time.Time `json:"validUntil,omitempty"`
	// Origin is of rules that a subscription wrote; nil for those of people.
	Origin *Origin `json:"origin,omitempty"`
}

// Origin is the subscription that wrote a rule or override, and alone may change
// it. The control plane sets it; what a caller sends is ignored.
type Origin struct {
	Subscription string `json:"subscription"`
	Plan         string `json:"plan"`
	PlanVersion  int64  `json:"planVersion"`
}

// Thresholds are points of a quota's use.
type Thresholds struct {
	// Percent is of the limit, 1 to 1000.
	Percent []int64 `json:"percent,omitempty"`
	// Absolute is in units used, 1 or more.
	Absolute []int64 `json:"absolute,omitempty"`
}

// DefaultThresholds hold for a quota that names none.
func DefaultThresholds() Thresholds { return Thresholds{Percent: []int64{80, 100}} }

// Subject is one of six dimensions and a value in it.
type Subject struct {
	Kind string `json:"kind"`
	// Value is exact, or * for each value its own counter. For user and
	// application it is tenant/name; acme/* is each of acme's.
	Value string `json:"value"`
}

// Scope limits a rule to a service, or to a service and endpoint pattern.
type Scope struct {
	Service string `json:"service,omitempty"`
	// Endpoint is METHOD /pattern in the syntax of net/http.ServeMux, route
	// prefix included.
	Endpoint string `json:"endpoint,omitempty"`
}

// IsZero reports the global scope.
func (s Scope) IsZero() bool { return s == Scope{} }

// Limit is an algorithm and its numbers.
type Limit struct {
	Algorithm string `json:"algorithm"`
	// Limit is units per window or period; 0 lets nothing pass.
	Limit *int64 `json:"limit,omitempty"`
	// Window is a duration such as 30s, 1m, 24h; 1 s to 1 year.
	Window string `json:"window,omitempty"`
	// Burst is the capacity of a rested counter (gcra, tokenBucket); default: limit.
	Burst *int64 `json:"burst,omitempty"`

	// The rest is for algorithm quota.
	Kind      string `json:"kind,omitempty"`
	Period    string `json:"period,omitempty"`
	Timezone  string `json:"timezone,omitempty"`
	AnchorDay int    `json:"anchorDay,omitempty"`
	WeekStart string `json:"weekStart,omitempty"`
	// Rollover is how many unused units of a period may be carried into the next.
	Rollover *int64 `json:"rollover,omitempty"`
	// Since is when a quota was first given a rollover: periods that ended before
	// leave nothing. The control plane writes it; what a caller sends is ignored.
	Since *time.Time `json:"since,omitempty"`
	// Overdraft is none or once: the request that takes the last unit may take
	// more than are left.
	Overdraft string `json:"overdraft,omitempty"`
	// Previous are the calendars a renewing quota counted by before this one,
	// the oldest first: a change of timezone, anchorDay or weekStart takes effect
	// at the end of the running period. The control plane writes it; what a
	// caller sends here is ignored.
	Previous []Calendar `json:"previous,omitempty"`
}

// Calendar is how a quota's period was cut before a change.
type Calendar struct {
	Timezone  string `json:"timezone,omitempty"`
	AnchorDay int    `json:"anchorDay,omitempty"`
	WeekStart string `json:"weekStart,omitempty"`
	// Until is the first instant that the next calendar holds; the end of a
	// period of this one.
	Until time.Time `json:"until"`
}
