package rule_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// winner is what a scan and an index must agree on.
type winner struct {
	ID, Subject, Override string
	Deny                  bool
}

// candidate is a rule that covers the request, with what ranks it.
type candidate struct {
	r       rules.Rule
	subject string
	missing bool
	deny    bool
}

// scan is the naive way to find winners, straight from the words of the design.
func scan(all map[string]rules.Rule, exceptions map[string]overrides.Override, req *rule.Request) []winner {
	groups := map[string][]candidate{}
	lifters := map[string][]candidate{}
	for _, r := range all {
		c, ok := cover(r, req)
		if !ok {
			continue
		}
		set := r.Subject.Kind + " " + r.Metric + " " + strings.ReplaceAll(r.Mode, rules.ModeEnforce, "")
		if r.Limit == nil {
			lifters[set] = append(lifters[set], c)
		} else {
			groups[set+" "+horizonOf(r)] = append(groups[set+" "+horizonOf(r)], c)
		}
	}
	won := map[string]candidate{}
	for g, cs := range groups {
		won[g] = slices.MinFunc(cs, specificity)
	}
	for set, cs := range lifters {
		lifter := slices.MinFunc(cs, specificity)
		for g, c := range won {
			if strings.HasPrefix(g, set+" ") && specificity(lifter, c) < 0 {
				delete(won, g)
			}
		}
		if _, counted := won[set+" month"]; !counted {
			won[set+" month"] = lifter
		}
	}
	var out []winner
	for _, c := range won {
		out = append(out, winner{c.r.ID, c.subject, overrideOf(exceptions, c, req.Now), c.deny})
	}
	slices.SortFunc(out, func(a, b winner) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// horizonOf is a rate's window, or a quota's period.
func horizonOf(r rules.Rule) string {
	if r.Limit == nil {
		return "month"
	}
	if r.Limit.Algorithm == rules.AlgorithmQuota {
		if r.Limit.Kind == rules.QuotaPrepaid {
			return rules.QuotaPrepaid
		}
		return r.Limit.Period
	}
	w, _ := time.ParseDuration(r.Limit.Window)
	return w.String()
}

// overrideOf is the id of the override that holds for a winner, "" for none.
func overrideOf(all map[string]overrides.Override, c candidate, now time.Time) string {
	found := ""
	for _, o := range all {
		if c.missing || horizonOf(c.r) == rules.QuotaPrepaid || o.Subject.Kind != c.r.Subject.Kind || o.Subject.Value != c.subject || o.Metric != c.r.Metric ||
			o.ValidUntil != nil && !now.Before(*o.ValidUntil) {
			continue
		}
		horizon := o.Period
		if w, err := time.ParseDuration(o.Window); err == nil {
			horizon = w.String()
		}
		if horizon == horizonOf(c.r) || horizon == "" && found == "" {
			found = o.ID
		}
	}
	return found
}

// cover says whether a rule covers the request, and whose counter it takes.
func cover(r rules.Rule, req *rule.Request) (c candidate, ok bool) {
	if r.Mode == rules.ModeOff ||
		r.ValidFrom != nil && req.Now.Before(*r.ValidFrom) ||
		r.ValidUntil != nil && !req.Now.Before(*r.ValidUntil) {
		return c, false
	}
	if r.Scope.Service != "" && r.Scope.Service != req.Service {
		return c, false
	}
	if r.Scope.Endpoint != "" {
		p, err := route.Parse(r.Scope.Endpoint)
		if err != nil || !p.Matches(req.Method, req.Path) {
			return c, false
		}
	}
	c = candidate{r: r}
	join := func(a, sep, b string) string {
		if a == "" || b == "" {
			return ""
		}
		return a + sep + b
	}
	c.subject = map[string]string{
		rules.SubjectTenant: req.TenantID, rules.SubjectAPIKey: req.APIKeyID, rules.SubjectService: req.Service,
		rules.SubjectUser:        join(req.TenantID, "/", req.UserID),
		rules.SubjectApplication: join(req.TenantID, "/", req.ApplicationID),
		rules.SubjectEndpoint:    join(req.Service, " ", req.Endpoint),
	}[r.Subject.Kind]
	within, wide := strings.CutSuffix(r.Subject.Value, "/*")
	wide = wide && (r.Subject.Kind == rules.SubjectUser || r.Subject.Kind == rules.SubjectApplication)
	switch {
	case r.Subject.Value != "*" && !wide:
		return c, c.subject != "" && c.subject == r.Subject.Value
	case wide && within != req.TenantID:
		return c, false
	case c.subject != "":
		return c, true
	case wide:
		c.subject = within + "/"
	}
	c.missing, c.deny = true, r.OnMissing == rules.MissingDeny
	return c, r.OnMissing == rules.MissingShared || c.deny
}

func specificity(a, b candidate) int {
	rank := func(r rules.Rule) (scope, form int, p route.Pattern) {
		switch {
		case r.Scope.Endpoint != "":
			p, _ = route.Parse(r.Scope.Endpoint)
		case r.Scope.Service != "":
			scope = 1
		default:
			scope = 2
		}
		if r.Subject.Value == "*" {
			form = 2
		} else if strings.HasSuffix(r.Subject.Value, "/*") {
			form = 1
		}
		return scope, form, p
	}
	as, af, ap := rank(a.r)
	bs, bf, bp := rank(b.r)
	return cmp.Or(as-bs, route.Compare(ap, bp), af-bf, b.r.Priority-a.r.Priority, cmp.Compare(a.r.ID, b.r.ID))
}

var (
	tenants  = []string{"a", "b", "a:u"}
	names    = []string{"u", "v", "u:b"}
	services = []string{"s", "my svc"}
	patterns = []string{"GET /s/x", "/s/{id}", "GET /s/{id}", "/s/", "/s/{rest...}", "POST /s/x/y"}
)

func drawRule(t *rapid.T) rules.Rule {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	r := rules.Rule{
		ID: fmt.Sprintf("r%d", rapid.IntRange(0, 15).Draw(t, "id")), Metric: pick("metric", "m", "n"),
		Mode: pick("mode", "", rules.ModeEnforce, rules.ModeShadow, rules.ModeOff), Priority: rapid.IntRange(0, 1).Draw(t, "priority"),
	}
	r.Subject = drawSubject(t)
	switch tenant, _, member := strings.Cut(r.Subject.Value, "/"); {
	case r.Subject.Kind == rules.SubjectUser || r.Subject.Kind == rules.SubjectApplication && member:
		r.Subject.Value = pick("value", "*", tenant+"/*", r.Subject.Value)
	default:
		r.Subject.Value = pick("value", "*", r.Subject.Value, r.Subject.Value)
	}
	if strings.HasSuffix(r.Subject.Value, "*") {
		r.OnMissing = pick("onMissing", "", rules.MissingShared, rules.MissingDeny)
	}
	switch rapid.IntRange(0, 2).Draw(t, "scope") {
	case 1:
		r.Scope.Service = pick("service", services...)
	case 2:
		r.Scope.Service, r.Scope.Endpoint = pick("service", services...), pick("endpoint", patterns...)
	}
	one := int64(1)
	switch n := rapid.IntRange(0, 5).Draw(t, "limit"); {
	case n == 0:
		r.Unlimited = true
	case n == 1 && r.Subject.Kind == rules.SubjectTenant && r.OnMissing != rules.MissingShared:
		r.Limit = &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaPrepaid}
	case n <= 2:
		r.Limit = &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaRenewing, Period: pick("period", "month", "day"), Timezone: pick("zone", "", "Europe/Paris"), Limit: &one}
	default:
		r.Limit = &rules.Limit{Algorithm: pick("alg", rules.AlgorithmGCRA, rules.AlgorithmFixedWindow, rules.AlgorithmSlidingWindow, rules.AlgorithmTokenBucket), Window: pick("window", "60s", "1m", "2s"), Limit: &one}
	}
	instants := []time.Time{at(5), at(10)}
	if rapid.IntRange(0, 3).Draw(t, "until") == 0 {
		r.ValidUntil = &instants[rapid.IntRange(0, 1).Draw(t, "u")]
	}
	if rapid.IntRange(0, 3).Draw(t, "from") == 0 {
		r.ValidFrom = &[]time.Time{at(4)}[0]
	}
	return r
}

// drawSubject draws one with an exact value.
func drawSubject(t *rapid.T) rules.Subject {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	s := rules.Subject{Kind: pick("kind", rules.SubjectTenant, rules.SubjectUser, rules.SubjectApplication, rules.SubjectAPIKey, rules.SubjectService, rules.SubjectEndpoint)}
	tenant, name := pick("tenant", tenants...), pick("name", names...)
	s.Value = map[string]string{
		rules.SubjectTenant: tenant, rules.SubjectAPIKey: name, rules.SubjectService: pick("svc", services...),
		rules.SubjectUser: tenant + "/" + name, rules.SubjectApplication: tenant + "/" + name,
		rules.SubjectEndpoint: pick("svc", services...) + " " + pick("pattern", patterns...),
	}[s.Kind]
	return s
}

func drawOverride(t *rapid.T) overrides.Override {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	one := int64(1)
	o := overrides.Override{Subject: drawSubject(t), Metric: pick("metric", "m", "n"), Limit: &one}
	switch rapid.IntRange(0, 2).Draw(t, "horizon") {
	case 0:
		o.Window = pick("window", "60s", "1m", "2s")
	case 1:
		o.Period = pick("period", "month", "day")
	}
	if rapid.Bool().Draw(t, "until") {
		o.ValidUntil = &[]time.Time{at(7)}[0]
	}
	return rule.NormalizeOverride(o)
}

func at(second int64) time.Time { return time.Unix(second, 0).UTC() }

func drawRequest(t *rapid.T) *rule.Request {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	return &rule.Request{
		TenantID: pick("tenant", append(tenants, "")...), UserID: pick("user", append(names, "")...),
		ApplicationID: pick("application", append(names, "")...), APIKeyID: pick("key", append(names, "")...),
		Service: pick("service", services...), Endpoint: pick("endpoint", append(patterns, "")...),
		Method: pick("method", "GET", "HEAD", "POST"), Path: pick("path", "/s/x", "/s/y", "/s/", "/s/x/y", "/s"),
		Now: at(rapid.Int64Range(3, 11).Draw(t, "now")),
	}
}

// model is an index and what it should hold.
type model struct {
	ix         *rule.Index
	all        map[string]rules.Rule
	exceptions map[string]overrides.Override
}

// The index finds what a scan of all rules finds, after any history; and what
// it explains is what it does.
func TestIndexEqualsScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{rule.New(), map[string]rules.Rule{}, map[string]overrides.Override{}}
		t.Repeat(map[string]func(*rapid.T){
			"put":             m.put,
			"putBad":          m.putBad,
			"delete":          m.delete,
			"replace":         m.replace,
			"override":        m.override,
			"deleteOverride":  m.deleteOverride,
			"replaceOverride": m.replaceOverrides,
			"":                m.check,
		})
	})
}

func (m *model) put(t *rapid.T) {
	r := drawRule(t)
	if err := m.ix.Put(r); err != nil {
		t.Fatal(err)
	}
	m.all[r.ID] = r
}

func (m *model) putBad(t *rapid.T) {
	r := drawRule(t)
	r.Metric = ""
	if m.ix.Put(r) == nil {
		t.Fatal("a rule without metric was taken")
	}
}

func (m *model) delete(t *rapid.T) {
	id := fmt.Sprintf("r%d", rapid.IntRange(0, 15).Draw(t, "id"))
	_, had := m.all[id]
	if m.ix.Delete(id) != had {
		t.Fatalf("Delete(%s) is not %t", id, had)
	}
	delete(m.all, id)
}

func (m *model) replace(t *rapid.T) {
	clear(m.all)
	var list []rules.Rule
	for _, r := range rapid.SliceOfN(rapid.Custom(drawRule), 0, 10).Draw(t, "rules") {
		m.all[r.ID], list = r, append(list, r)
	}
	if err := m.ix.Replace(list); err != nil {
		t.Fatal(err)
	}
}

func (m *model) override(t *rapid.T) {
	o := drawOverride(t)
	c, err := rule.CompileOverride(o)
	if err != nil {
		t.Fatal(err)
	}
	m.exceptions[o.ID] = o
	m.ix.PutOverride(c)
}

func (m *model) deleteOverride(t *rapid.T) {
	o := drawOverride(t)
	_, had := m.exceptions[o.ID]
	if m.ix.DeleteOverride(o.ID) != had {
		t.Fatalf("DeleteOverride(%s) is not %t", o.ID, had)
	}
	delete(m.exceptions, o.ID)
}

func (m *model) replaceOverrides(t *rapid.T) {
	clear(m.exceptions)
	var list []*rule.CompiledOverride
	for _, o := range rapid.SliceOfNDistinct(rapid.Custom(drawOverride), 0, 10, func(o overrides.Override) string { return o.ID }).Draw(t, "overrides") {
		c, err := rule.CompileOverride(o)
		if err != nil {
			t.Fatal(err)
		}
		m.exceptions[o.ID], list = o, append(list, c)
	}
	m.ix.ReplaceOverrides(list)
}

func (m *model) check(t *rapid.T) {
	if m.ix.Len() != len(m.all) || len(m.ix.All()) != len(m.all) {
		t.Fatalf("%d rules, want %d", m.ix.Len(), len(m.all))
	}
	req := drawRequest(t)
	matches := m.ix.Match(req, nil)
	if diff := gocmp.Diff(scan(m.all, m.exceptions, req), winnersOf(matches)); diff != "" {
		t.Fatalf("%+v\nindex (+) differs from scan (-):\n%s", req, diff)
	}
	explained := m.ix.Explain(req)
	if len(explained.Matches) != len(matches) {
		t.Fatalf("explains %d winners, finds %d", len(explained.Matches), len(matches))
	}
	for i := range matches {
		if matches[i] != explained.Matches[i] {
			t.Fatalf("%+v\nexplains %+v, finds %+v", req, explained.Matches[i], matches[i])
		}
	}
	m.checkConsidered(t, explained, req)
}

// checkConsidered holds that every rule about the request's subjects is named
// once, the winners as such, and that who lost lost to somebody who is named.
func (m *model) checkConsidered(t *rapid.T, e rule.Explanation, req *rule.Request) {
	won, named := 0, map[string]string{}
	for _, c := range e.Considered {
		if named[c.Rule.ID] != "" {
			t.Fatalf("%s is named twice", c.Rule.ID)
		}
		named[c.Rule.ID] = c.Result
		_, covers := cover(m.all[c.Rule.ID], req)
		if decided := c.Result == rule.ResultWon || c.Result == rule.ResultLost || c.Result == rule.ResultLifted; decided != covers {
			t.Fatalf("%s: %s, although it covers the request: %t", c.Rule.ID, c.Result, covers)
		}
		if c.Result == rule.ResultWon {
			won++
		}
		if lost := c.Result == rule.ResultLost || c.Result == rule.ResultLifted; lost != (c.By != nil && c.Because != "") {
			t.Fatalf("%s: %s by %v because %q", c.Rule.ID, c.Result, c.By, c.Because)
		}
	}
	if won != len(e.Matches) {
		t.Fatalf("%d rules won, of %d winners", won, len(e.Matches))
	}
	for id, r := range m.all {
		if _, covers := cover(r, req); covers && named[id] == "" {
			t.Fatalf("%s covers the request and is not named", id)
		}
	}
}

func winnersOf(matches []rule.Match) []winner {
	var got []winner
	for i := range matches {
		w := winner{ID: matches[i].Rule.ID, Subject: matches[i].Subject(), Deny: matches[i].MissingDeny}
		if o := matches[i].Override; o != nil {
			w.Override = o.ID
		}
		got = append(got, w)
	}
	slices.SortFunc(got, func(a, b winner) int { return cmp.Compare(a.ID, b.ID) })
	return got
}
