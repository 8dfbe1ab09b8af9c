package usage

import (
	"time"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Topic is the name of the topic, without a deployment prefix.
const Topic = "usage.v1"

// Decisions; an open vocabulary.
const (
	DecisionAllow  = "ALLOW"
	DecisionDeny   = "DENY"
	DecisionShadow = "SHADOW"
)

// Decisions of events that tell how a reservation ended, which was ALLOW or
// SHADOW when it was made. Nobody asked for anything then: StatusCode is 200, and
// Cost what it came to.
const (
	DecisionCommit  = "COMMIT"
	DecisionRelease = "RELEASE"
	DecisionExpire  = "EXPIRE"
)

// Decisions are all of them.
func Decisions() []string {
	return []string{DecisionAllow, DecisionDeny, DecisionShadow, DecisionCommit, DecisionRelease, DecisionExpire}
}

// Algorithms as events name them; an open vocabulary.
const (
	AlgoFixedWindow    = "FIXED_WINDOW"
	AlgoSlidingWindow  = "SLIDING_WINDOW"
	AlgoTokenBucket    = "TOKEN_BUCKET"
	AlgoGCRA           = "GCRA"
	AlgoRenewingQuota  = "RENEWING_QUOTA"
	AlgoPrepaidQuota   = "PREPAID_QUOTA"
	AlgoOverdraftQuota = "OVERDRAFT_QUOTA"
)

// What a cache did for a request; an open vocabulary.
const (
	CachedHit       = "hit"       // answered with a stored answer, fresh
	CachedStale     = "stale"     // the same, past its freshness
	CachedCoalesced = "coalesced" // waited for the load of another request
)

// Event is one decision of a gateway.
type Event struct {
	// ID is the decision's id (UUIDv7), the same as Sluice-Decision-Id.
	ID string `json:"id"`
	// TS is when the decision was made, UTC, milliseconds.
	TS            time.Time `json:"ts"`
	TenantID      string    `json:"tenantId,omitempty"`
	UserID        string    `json:"userId,omitempty"`
	ApplicationID string    `json:"applicationId,omitempty"`
	// APIKeyHash is sha256: and the hash's hexadecimal digits; empty without a key.
	APIKeyHash string `json:"apiKeyHash,omitempty"`
	Service    string `json:"service"`
	// Endpoint is the catalog's pattern without its method; for a path that is
	// not in the catalog, the cleaned path.
	Endpoint string `json:"endpoint"`
	Method   string `json:"method"`
	// Decision is ALLOW, DENY or SHADOW, or the end of a reservation.
	Decision string `json:"decision"`
	// StatusCode is what the client was answered, by the gate or the service.
	StatusCode int `json:"statusCode"`
	// RuleID and Algo name the rule that denied, or else the tightest one;
	// empty where no rule matched.
	RuleID string `json:"ruleId,omitempty"`
	Algo   string `json:"algo,omitempty"`
	// Reason says why a denied or degraded decision was made, such as
	// quota-exceeded, store-unavailable, counter-broken, identity-missing; empty
	// otherwise.
	Reason string `json:"reason,omitempty"`
	// Cached says what the gateway's cache did for the request, see the
	// constants; empty where the service answered it.
	Cached string `json:"cached,omitempty"`
	// Reservation is the id of the reservation that was made, denied or ended;
	// empty for requests.
	Reservation string `json:"reservation,omitempty"`
	// ReservationState is how far it has come, for a store of counters that has
	// lost it; nil of one that was denied.
	ReservationState *ReservationState `json:"reservationState,omitempty"`

	Cost int64 `json:"cost"`
	// LatencyMs is the gate's own time, without the upstream's.
	LatencyMs float64 `json:"latencyMs"`
	// Charges are the quota counters charged, with totals after the charge.
	Charges []Charge `json:"charges,omitempty"`
	// Gateway is the instance that decided.
	Gateway string `json:"gateway"`
}

// ReservationState is what brings a reservation back (schemas/redis/KEYS.md).
type ReservationState struct {
	// Attempt is when its units count, µs since the epoch.
	Attempt int64 `json:"attempt"`
	// State is its number: 1 reserved, 2 released, 3 expired, 5 and more committed.
	State int64 `json:"state"`
	// EndedAt is when it ended, µs since the epoch; 0 while it is open.
	EndedAt int64 `json:"endedAt,omitempty"`
	// Uncharged are the places of shadow rules in Record that were not charged.
	Uncharged []int64 `json:"uncharged,omitempty"`
	// Record is what it charges (libs/reserve); with the event of its making.
	Record string `json:"record,omitempty"`
}

// Charge is what a decision took from one quota counter, and the counter's
// totals right after, from the same atomic step. Totals only ever grow.
type Charge struct {
	// Counter is the counter's identity: its key without a deployment prefix.
	Counter  string `json:"counter"`
	Metric   string `json:"metric"`
	Amount   int64  `json:"amount"`
	Consumed int64  `json:"consumed"`
	Refunded int64  `json:"refunded"`
	// Forfeited is always 0 for renewing quotas.
	Forfeited int64 `json:"forfeited,omitempty"`
	// Carried is what the period has from the last one, of quotas with rollover;
	// it stands from the period's first charge on.
	Carried *int64 `json:"carried,omitempty"`
	// Limit is what the charge was judged by; nil is unlimited.
	Limit *int64 `json:"limit,omitempty"`
	// Pending: the store was away and the request passed all the same; the
	// amount is charged afterwards, once. The totals are then unknown and 0;
	// later events of the counter carry totals that contain it.
	Pending bool `json:"pending,omitempty"`
	// Refund: the call failed, and a rule of this counter gives back (refundOn)
	// what another charge of this event says it took. Amount is below 0, and
	// Pending is set: it is given back through the gateway's journal.
	Refund bool `json:"refund,omitempty"`
	// Thresholds are those of the rule that judged, nil where it names none
	// (rules.DefaultThresholds then hold). They travel with the charge, so that
	// a crossing is judged by what was in force, however late it is read.
	Thresholds *rules.Thresholds `json:"thresholds,omitempty"`
}
