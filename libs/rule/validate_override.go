package rule

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

const maxReason = 1024 // characters

// OverrideID returns the id that follows from what an override is for: subject,
// metric and horizon, with a colon between; tenant:acme:requests:1m. Colons and
// the like in them are percent-escaped.
func OverrideID(o overrides.Override) string {
	id := escape(o.Subject.Kind) + ":" + escape(o.Subject.Value) + ":" + escape(o.Metric)
	if horizon := o.Window + o.Period; horizon != "" {
		id += ":" + escape(horizonText(o.Window)+o.Period)
	}
	return id
}

// horizonText writes a window in its largest whole unit: 90s, 1m, 24h.
func horizonText(window string) string {
	d, err := time.ParseDuration(window)
	switch {
	case err != nil || d <= 0 || d%time.Second != 0:
		return window
	case d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + "s"
}

// NormalizeOverride returns o with its id and the window in canonical spelling.
// It is idempotent.
func NormalizeOverride(o overrides.Override) overrides.Override {
	o.Window = horizonText(o.Window)
	o.ID = OverrideID(o)
	return o
}

// ValidateOverride returns what is wrong with an override as REST takes it, nil
// if nothing is. An id may be left out.
func ValidateOverride(o overrides.Override) []FieldError {
	v := &validator{}
	if id := OverrideID(o); o.ID != "" && o.ID != id {
		v.add("id", "must be %s, which follows from subject, metric and horizon, or be left out", id)
	}
	if !printable(o.Reason) || len([]rune(o.Reason)) > maxReason {
		v.add("reason", "must be at most %d printable characters", maxReason)
	}
	v.exactSubject(o.Subject)
	if !metricSyntax.MatchString(o.Metric) {
		v.add("metric", metricMessage)
	}
	v.horizon(o)
	v.overrideNumbers(o)
	v.validity(nil, o.ValidUntil)
	return v.errs
}

func (v *validator) exactSubject(s rules.Subject) {
	before := len(v.errs)
	v.subject(rules.Rule{Subject: s})
	if len(v.errs) == before && formOf(kindOf(s.Kind), s.Value) != formExact {
		v.add("subject.value", "must be exact: an override is for one %s; for many of them write a rule", s.Kind)
	}
}

func (v *validator) horizon(o overrides.Override) {
	if o.Window != "" {
		v.window("window", o.Window)
		if o.Period != "" {
			v.add("period", "must be left out where window is given: a horizon is one or the other")
		}
		return
	}
	units := []string{period.NameHour, period.NameDay, period.NameWeek, period.NameMonth, period.NameYear, period.NameNever}
	if o.Period != "" && !slices.Contains(units, o.Period) {
		v.add("period", "must be one of %s", strings.Join(units, ", "))
	}
}

func (v *validator) overrideNumbers(o overrides.Override) {
	switch {
	case o.Unlimited && o.Limit != nil:
		v.add("limit", "must be left out where unlimited is true")
	case !o.Unlimited && o.Limit == nil:
		v.add("limit", "must be given, or unlimited must be true; 0 lets nothing pass")
	case o.Limit != nil && (*o.Limit < 0 || *o.Limit > limit.MaxInteger):
		v.add("limit", "must be 0 to %d", int64(limit.MaxInteger))
	}
	switch {
	case o.Burst == nil:
	case o.Unlimited:
		v.add("burst", "must be left out where unlimited is true")
	case o.Period != "":
		v.add("burst", "belongs to rates; leave it out where period is given")
	case *o.Burst < 1 || *o.Burst > limit.MaxInteger:
		v.add("burst", "must be 1 to %d", int64(limit.MaxInteger))
	}
}
