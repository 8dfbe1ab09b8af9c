package rule

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// remains are the fields that say whom a rule concerns and what it says of the
// loss of its counter.
type remains struct {
	ID          string        `json:"id"`
	Version     int64         `json:"version"`
	Subject     rules.Subject `json:"subject"`
	Scope       rules.Scope   `json:"scope"`
	Metric      string        `json:"metric"`
	Mode        string        `json:"mode"`
	OnStoreLoss string        `json:"onStoreLoss"`
	OnMissing   string        `json:"onMissing"`
	Priority    int           `json:"priority"`
	ValidFrom   *time.Time    `json:"validFrom"`
	ValidUntil  *time.Time    `json:"validUntil"`
}

// Salvage makes, of a record that Decode refused, a rule that stands in for it:
// it wins where the rule would, or might, and instead of a counter it has
// Unreadable, which says why. Its OnStoreLoss is what holds. ok is false where
// not even that much can be read, or would be a guess.
//
// What it counts by is not known, so it competes with no other rule: only an
// unlimited one lifts it.
func Salvage(data []byte, why error) (c *Compiled, ok bool) {
	var m remains
	if err := json.Unmarshal(data, &m); err != nil || m.OnStoreLoss == "" {
		return nil, false
	}
	r := rules.Rule{
		ID: m.ID, Version: m.Version, Subject: m.Subject, Scope: m.Scope, Metric: m.Metric, Mode: m.Mode,
		OnStoreLoss: m.OnStoreLoss, OnMissing: m.OnMissing, Priority: m.Priority, ValidFrom: m.ValidFrom, ValidUntil: m.ValidUntil,
		Unlimited: true, // in place of the limit, which nobody will ask for
	}
	if len(Validate(r)) > 0 {
		return nil, false
	}
	n, k := Normalize(r), kindOf(r.Subject.Kind)
	t, err := newTerms(&n, k, formOf(k, r.Subject.Value))
	if err != nil {
		return nil, false
	}
	t.Unreadable, t.Algorithm = strings.Clone(why.Error()), 0
	t.group = &group{metric: t.Metric, kind: k, class: classUnreadable, shadow: t.Shadow}
	c = &Compiled{terms: t, Version: r.Version, priority: int32(r.Priority), cost: ownCost, from: math.MinInt64, until: math.MaxInt64}
	c.setNumbers(&r)
	c.setTexts(&r)
	return c, true
}
