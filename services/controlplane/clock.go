package controlplane

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// dated are the kinds of things, by their tag, whose writes a caller may not
// make by a clock that is off: what is sold, to whom, and how much of it. What
// stops an attack (rules, keys, services) does not wait for a clock to be set.
var dated = map[string]bool{"customers": true, "plans": true, "subscriptions": true, "wallets": true, "overrides": true}

// repeatable are the operations whose repetitions are answered as the first was,
// whatever the clock says by then: each judges it by itself, of what is none.
var repeatable = map[string]bool{topUpOperation: true}

// isDated tells the operations that are judged by the caller's clock.
func isDated(op huma.Operation) bool {
	return op.Method != http.MethodGet && len(op.Tags) > 0 && dated[op.Tags[0]]
}

func dateParameter(op huma.Operation) *huma.Param {
	about := "The caller's clock (RFC 9110, 6.6.1), or absent. 400 where it is further from the control plane's than controlplane.maxClockSkew " +
		"(15m by default): a caller whose clock is off would buy, end or grant at another time than it means."
	if repeatable[op.OperationID] {
		about += " Of a repetition it is not looked at: that may have waited."
	}
	return &huma.Param{Name: "Date", In: "header", Schema: &huma.Schema{Type: "string"}, Example: "Thu, 23 Jul 2026 14:32:07 GMT", Description: about}
}

// checkDate refuses a write whose caller's clock is off. Callers that send no
// Date are not asked for one.
func (s *Service) checkDate(h http.Header) *Problem {
	text := h.Get("Date")
	if text == "" {
		return nil
	}
	at, err := parseDate(text)
	if err != nil {
		return invalid(FieldError{"header", "Date", fmt.Sprintf("must be a date such as %s, or be left out; it is %q", s.deps.Now().UTC().Format(http.TimeFormat), printable(text))})
	}
	now := s.deps.Now()
	if off := at.Sub(now).Abs(); off <= s.cfg.MaxClockSkew {
		return nil
	}
	return invalid(FieldError{"header", "Date", fmt.Sprintf("must be within %s of the control plane's clock, which says %s; it says %s: set the clock, or leave Date out",
		s.cfg.MaxClockSkew, instant(now), instant(at))})
}

// parseDate reads a date in any form of RFC 9110, 5.6.7. Its second may be 60,
// the leap second, which clocks here have as the first of the next minute.
func parseDate(text string) (time.Time, error) {
	without := strings.Replace(text, ":60 ", ":59 ", 1) // a space follows seconds alone
	at, err := http.ParseTime(without)
	if without != text {
		at = at.Add(time.Second)
	}
	return at, err
}

// instant writes a time as messages have it.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// term is an instant in a body that says when something holds.
type term struct {
	field string
	// was is what is stored, nil if nothing is: what GET answered can be PUT
	// back, however long ago it ended.
	was, is *time.Time
	// after is the time that it must lie behind; zero is any.
	after time.Time
}

// checkTerms refuses new instants that a caller whose clock is right can hardly
// mean.
func (s *Service) checkTerms(terms ...term) error {
	var found []FieldError
	for _, t := range terms {
		if t.is == nil || t.was != nil && t.was.Equal(*t.is) {
			continue
		}
		if message := s.misses(t); message != "" {
			found = append(found, FieldError{"body", t.field, message})
		}
	}
	if found == nil {
		return nil
	}
	return invalid(found...)
}

// misses says what is wrong with an instant, empty if nothing is.
func (s *Service) misses(t term) string {
	now := s.deps.Now()
	latest := now.Add(s.cfg.MaxAhead)
	switch {
	case !t.after.IsZero() && !t.is.After(t.after):
		return fmt.Sprintf("must be after %s: it is %s here, and clocks may be off by %s (controlplane.maxClockSkew); given is %s",
			instant(t.after), instant(now), s.cfg.MaxClockSkew, instant(*t.is))
	case t.is.After(latest):
		return fmt.Sprintf("must be %s at the latest (controlplane.maxAhead), or be left out; given is %s", instant(latest), instant(*t.is))
	}
	return ""
}
