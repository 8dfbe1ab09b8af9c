package reserve

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Record is what an attempt charges, and for whom. It is written before the
// charge, and never changed.
type Record struct {
	ID string `json:"id"`
	// Tenant is whose it is; ids of two tenants have nothing to do with each other.
	Tenant      string `json:"tenant"`
	User        string `json:"user,omitempty"`
	Application string `json:"app,omitempty"`
	APIKeyHash  string `json:"key,omitempty"`
	// APIKey is the id of the key that proved the identity, where a rule counts by
	// it; empty otherwise.
	APIKey   string `json:"keyId,omitempty"`
	Service  string `json:"service"`
	Endpoint string `json:"endpoint"`
	Method   string `json:"method"`
	// Cost is what was asked for, in units; MaxCost the most that may be committed.
	Cost    int64 `json:"cost"`
	MaxCost int64 `json:"max"`
	// At is when its units count, and Until when it falls due: µs since the epoch,
	// by the store's clock. At also names the attempt. Reserve sets both.
	At    int64 `json:"at"`
	Until int64 `json:"until"`
	// Request tells repeats of one request from another one with the same id.
	Request string   `json:"request"`
	Charges []Charge `json:"charges"`
}

// Charge is one counter of a record, with its cost.
type Charge struct {
	limit.Saved

	Rule   string `json:"rule"`
	Metric string `json:"metric"`
	// Own: the cost is the rule's own, whatever the request costs. A commit leaves
	// it as it is.
	Own bool `json:"own,omitempty"`
	// Shadow: it is judged alone, and denies nothing.
	Shadow     bool              `json:"shadow,omitempty"`
	Thresholds *rules.Thresholds `json:"thresholds,omitempty"`
}

// ReservedAt is when the record's units count.
func (r *Record) ReservedAt() time.Time { return time.UnixMicro(r.At).UTC() }

// ExpiresAt is when it falls due.
func (r *Record) ExpiresAt() time.Time { return time.UnixMicro(r.Until).UTC() }

func (r *Record) encode() []byte {
	b, _ := json.Marshal(r) // strings, numbers and times of this century
	return b
}

func decodeRecord(b []byte) (*Record, error) {
	r := new(Record)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("record of a reservation: %w", err)
	}
	return r, nil
}

// due is what the charge costs in a state, in units.
func (c *Charge) due(s State, committed int64) int64 {
	switch {
	case s == Reserved:
		return c.Cost
	case s == Committed && c.Own:
		return c.Cost
	case s == Committed:
		return committed
	}
	return 0
}

// correction is what takes a charge from what was reserved to what it comes to
// in the end; ok is false where nothing is to be done. It is denied nothing.
func (c *Charge) correction(at time.Time, s State, committed int64) (n limit.Counter, ok bool, err error) {
	units := c.due(s, committed) - c.Cost
	if units == 0 {
		return n, false, nil
	}
	if n, err = c.Counter(at); err != nil {
		return n, false, fmt.Errorf("counter %s: %w", c.Key, err)
	}
	n.Cost, n.Force = units, units > 0
	return n, true, nil
}
