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
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// winner is what a scan and an index must agree on.
type winner struct {
	ID, Subject string
	Deny        bool
}

// candidate is a rule that covers the request, with what ranks it.
type candidate struct {
	r       rules.Rule
	subject string
	deny    bool
}

// scan is the naive way to find winners, straight from the words of the design.
func scan(all map[string]rules.Rule, req *rule.Request) []winner {
	groups := map[string][]candidate{}
	lifters := map[string][]candidate{}
	for _, r := range all {
		c, ok := cover(r, req)
		if !ok {
			continue
		}
		set := r.Subject.Kind + " " + r.Metric
		switch {
		case r.Limit == nil:
			lifters[set] = append(lifters[set], c)
		case r.Limit.Algorithm == rules.AlgorithmQuota:
			groups[set+" quota"] = append(groups[set+" quota"], c)
		default:
			w, _ := time.ParseDuration(r.Limit.Window)
			groups[set+" rate "+w.String()] = append(groups[set+" rate "+w.String()], c)
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
		if _, counted := won[set+" quota"]; !counted {
			won[set+" quota"] = lifter
		}
	}
	var out []winner
	for _, c := range won {
		out = append(out, winner{c.r.ID, c.subject, c.deny})
	}
	slices.SortFunc(out, func(a, b winner) int { return cmp.Compare(a.ID, b.ID) })
	return out
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
	c.deny = r.OnMissing == rules.MissingDeny
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
		Mode: pick("mode", "", rules.ModeEnforce, rules.ModeOff), Priority: rapid.IntRange(0, 1).Draw(t, "priority"),
	}
	r.Subject.Kind = pick("kind", rules.SubjectTenant, rules.SubjectUser, rules.SubjectApplication, rules.SubjectAPIKey, rules.SubjectService, rules.SubjectEndpoint)
	tenant, name := pick("tenant", tenants...), pick("name", names...)
	exact := map[string]string{
		rules.SubjectTenant: tenant, rules.SubjectAPIKey: name, rules.SubjectService: pick("svc", services...),
		rules.SubjectUser: tenant + "/" + name, rules.SubjectApplication: tenant + "/" + name,
		rules.SubjectEndpoint: pick("svc", services...) + " " + pick("pattern", patterns...),
	}[r.Subject.Kind]
	r.Subject.Value = pick("value", "*", exact, exact)
	if r.Subject.Kind == rules.SubjectUser || r.Subject.Kind == rules.SubjectApplication {
		r.Subject.Value = pick("value", "*", tenant+"/*", exact)
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
	switch rapid.IntRange(0, 4).Draw(t, "limit") {
	case 0:
		r.Unlimited = true
	case 1:
		r.Limit = &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaRenewing, Period: "month", Limit: &one}
	default:
		r.Limit = &rules.Limit{Algorithm: pick("alg", rules.AlgorithmGCRA, rules.AlgorithmFixedWindow), Window: pick("window", "60s", "1m", "2s"), Limit: &one}
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

// The index finds what a scan of all rules finds, after any history.
func TestIndexEqualsScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ix, all := rule.New(), map[string]rules.Rule{}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				r := drawRule(t)
				if err := ix.Put(r); err != nil {
					t.Fatal(err)
				}
				all[r.ID] = r
			},
			"bad": func(t *rapid.T) {
				r := drawRule(t)
				r.Metric = ""
				if ix.Put(r) == nil {
					t.Fatal("a rule without metric was taken")
				}
			},
			"delete": func(t *rapid.T) {
				id := fmt.Sprintf("r%d", rapid.IntRange(0, 15).Draw(t, "id"))
				_, had := all[id]
				if ix.Delete(id) != had {
					t.Fatalf("Delete(%s) is not %t", id, had)
				}
				delete(all, id)
			},
			"replace": func(t *rapid.T) {
				clear(all)
				var list []rules.Rule
				for _, r := range rapid.SliceOfN(rapid.Custom(drawRule), 0, 10).Draw(t, "rules") {
					all[r.ID], list = r, append(list, r)
				}
				if err := ix.Replace(list); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				if ix.Len() != len(all) || len(ix.All()) != len(all) {
					t.Fatalf("%d rules, want %d", ix.Len(), len(all))
				}
				req := drawRequest(t)
				matches := ix.Match(req, nil)
				var got []winner
				for i := range matches {
					got = append(got, winner{matches[i].Rule.ID, matches[i].Subject(), matches[i].MissingDeny})
				}
				slices.SortFunc(got, func(a, b winner) int { return cmp.Compare(a.ID, b.ID) })
				if diff := gocmp.Diff(scan(all, req), got); diff != "" {
					t.Fatalf("%+v\nindex (+) differs from scan (-):\n%s", req, diff)
				}
			},
		})
	})
}
