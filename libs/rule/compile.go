package rule

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// kind is a subject's dimension; the order is that of Match's results.
type kind uint8

const (
	kindTenant kind = iota
	kindUser
	kindApplication
	kindAPIKey
	kindService
	kindEndpoint
	numKinds
)

// form is how exact a subject's value is, the most exact first.
type form uint8

const (
	formExact      form = iota
	formTenantWide      // tenant/*
	formAny             // *
)

// class is the part of a horizon that is not its length.
type class uint8

const (
	classRate class = iota
	classRenewing
	classAny // an unlimited rule without a limit: every horizon
)

// group is what only one rule wins: (subject.kind, metric, horizon).
type group struct {
	metric   string
	window   time.Duration
	kind     kind
	class    class
	calendar period.Calendar
}

// Compiled is a rule ready to be matched. It is immutable.
type Compiled struct {
	rules.Rule // normalized

	// Algorithm judges the counter; an unlimited rule without a limit counts
	// as a RenewingQuota of a month.
	Algorithm limit.Algorithm
	// Window is of rates, Calendar of quotas.
	Window   time.Duration
	Calendar period.Calendar

	group     group
	form      form
	scopeRank uint8         // 0 endpoint, 1 service, 2 global
	pattern   route.Pattern // of scope.endpoint
	from      int64         // µs since the epoch, inclusive
	until     int64         // µs since the epoch, exclusive
	exactKey  string        // the counter's key where it is the rule's alone
	keyTail   string        // the key's part after the subject
}

// Compile validates, normalizes and compiles a rule. The error is an
// *InvalidError.
func Compile(r rules.Rule) (*Compiled, error) {
	if errs := Validate(r); len(errs) > 0 {
		return nil, &InvalidError{ID: r.ID, Fields: errs}
	}
	c := &Compiled{Rule: Normalize(r)}
	for k := range numKinds {
		if kinds[k] == r.Subject.Kind {
			c.group.kind = k
		}
	}
	c.group.metric = r.Metric
	if err := c.compileLimit(); err != nil {
		return nil, err
	}
	if err := c.compileScope(); err != nil {
		return nil, err
	}
	c.compileValidity()
	c.compileSubject()
	return c, nil
}

func (c *Compiled) compileLimit() error {
	if c.Limit == nil {
		c.Algorithm, c.group.class = limit.RenewingQuota, classAny
		c.keyTail = ":" + c.Metric + ":quota:" + c.Calendar.String()
		return nil
	}
	if c.Limit.Algorithm == rules.AlgorithmQuota {
		c.Algorithm, c.Calendar = limit.RenewingQuota, period.Month()
		c.group.class, c.group.calendar = classRenewing, c.Calendar
		c.keyTail = ":" + c.Metric + ":quota:" + c.Calendar.String()
		return nil
	}
	window, err := time.ParseDuration(c.Limit.Window)
	if err != nil {
		return fmt.Errorf("parse window of rule %s: %w", c.ID, err)
	}
	c.Window, c.group.window, c.group.class = window, window, classRate
	name := "gcra"
	c.Algorithm = limit.GCRA
	if c.Limit.Algorithm == rules.AlgorithmFixedWindow {
		name, c.Algorithm = "fixed", limit.FixedWindow
	}
	c.keyTail = ":" + c.Metric + ":" + name + ":" + strconv.FormatInt(int64(window/time.Second), 10)
	return nil
}

func (c *Compiled) compileScope() error {
	switch {
	case c.Scope.Endpoint != "":
		p, err := route.Parse(c.Scope.Endpoint)
		if err != nil {
			return fmt.Errorf("parse scope of rule %s: %w", c.ID, err)
		}
		c.pattern, c.scopeRank = p, 0
	case c.Scope.Service != "":
		c.scopeRank = 1
	default:
		c.scopeRank = 2
	}
	return nil
}

func (c *Compiled) compileValidity() {
	c.from, c.until = -1<<63, 1<<63-1
	if c.ValidFrom != nil {
		c.from = c.ValidFrom.UnixMicro()
	}
	if c.ValidUntil != nil {
		c.until = c.ValidUntil.UnixMicro()
	}
}

// moreSpecific is the order of rules within a group: c wins over d.
func (c *Compiled) moreSpecific(d *Compiled) bool {
	if c.scopeRank != d.scopeRank {
		return c.scopeRank < d.scopeRank
	}
	if n := route.Compare(c.pattern, d.pattern); n != 0 {
		return n < 0
	}
	if c.form != d.form {
		return c.form < d.form
	}
	if c.Priority != d.Priority {
		return c.Priority > d.Priority
	}
	return c.ID < d.ID
}

// compileSubject finds the value's form, and the key of a counter that is the
// rule's alone. Keys of apiKey and endpoint take the request's tenant or service.
func (c *Compiled) compileSubject() {
	value := c.Subject.Value
	member := c.group.kind == kindUser || c.group.kind == kindApplication
	switch {
	case value == wildcard:
		c.form = formAny
		return
	case member && strings.HasSuffix(value, "/"+wildcard):
		c.form = formTenantWide
		return
	}
	c.form = formExact
	switch {
	case member:
		owner, name, _ := strings.Cut(value, "/")
		c.exactKey = counterKey(c.group.kind, subjectParts{owner, name}, c.keyTail)
	case c.group.kind == kindTenant || c.group.kind == kindService:
		c.exactKey = counterKey(c.group.kind, subjectParts{owner: value}, c.keyTail)
	}
}
