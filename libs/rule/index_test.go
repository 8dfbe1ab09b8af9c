package rule_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

func keysOf(t *testing.T, req *rule.Request, rs ...rules.Rule) map[string]string {
	t.Helper()
	ix := rule.New()
	if err := ix.Replace(rs); err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for _, m := range ix.Match(req, nil) {
		keys[m.Rule.ID] = m.CounterKey()
	}
	return keys
}

func TestCounterKeys(t *testing.T) {
	t.Parallel()
	req := &rule.Request{
		TenantID: "acme", UserID: "u1", ApplicationID: "app", APIKeyID: "k1",
		Service: "pay", Endpoint: "GET /pay/{id}", Method: "GET", Path: "/pay/7", Now: at(1),
	}
	odd := &rule.Request{TenantID: "a:{u}", UserID: "b %/", Service: "my svc", Now: at(1)}
	none := &rule.Request{Service: "pay", Now: at(1)}
	noUser := &rule.Request{TenantID: "acme", Service: "pay", Now: at(1)}
	for _, tc := range []struct {
		req               *rule.Request
		base, patch, want string
	}{
		{req, gcraRule, `{}`, "{t:acme}:t::m:gcra:60"},
		{req, gcraRule, `{"limit":{"window":"60s"},"subject":{"value":"acme"}}`, "{t:acme}:t::m:gcra:60"},
		{req, fixedRule, `{}`, "{t:acme}:u:u1:m:fixed:60"},
		{req, fixedRule, `{"subject":{"value":"acme/u1"}}`, "{t:acme}:u:u1:m:fixed:60"},
		{req, fixedRule, `{"subject":{"kind":"application"}}`, "{t:acme}:a:app:m:fixed:60"},
		{req, quotaRule, `{}`, "{t:acme}:t::m:quota"},
		{req, walletRule, `{"scope":{"service":"pay"}}`, rule.WalletCounter("acme", "m")},
		{odd, walletRule, `{"subject":{"value":"*"}}`, rule.WalletCounter("a:{u}", "m")},
		{req, gcraRule, `{"subject":{"kind":"apiKey","value":"k1"}}`, "{t:acme}:k:k1:m:gcra:60"},
		{req, gcraRule, `{"subject":{"kind":"service"}}`, "{s:pay}:s::m:gcra:60"},
		{req, gcraRule, `{"subject":{"kind":"endpoint"}}`, "{s:pay}:e:GET%20/pay/%7Bid%7D:m:gcra:60"},
		{req, gcraRule, `{"subject":{"kind":"endpoint","value":"pay GET /pay/{id}"}}`, "{s:pay}:e:GET%20/pay/%7Bid%7D:m:gcra:60"},
		{odd, gcraRule, `{}`, "{t:a%3A%7Bu%7D}:t::m:gcra:60"},
		{odd, gcraRule, `{"subject":{"kind":"user"}}`, "{t:a%3A%7Bu%7D}:u:b%20%25/:m:gcra:60"},
		{none, gcraRule, `{"onMissing":"shared"}`, "{-}:t::m:gcra:60"},
		{none, gcraRule, `{"subject":{"kind":"user"},"onMissing":"shared"}`, "{-}:u::m:gcra:60"},
		{noUser, fixedRule, `{"onMissing":"shared"}`, "{t:acme}:u::m:fixed:60"},
		{noUser, gcraRule, `{"subject":{"kind":"user"},"onMissing":"shared"}`, "{-}:u::m:gcra:60"},
		{none, gcraRule, `{}`, ""},
		{req, gcraRule, `{"limit":{"algorithm":"tokenBucket"}}`, "{t:acme}:t::m:bucket:60"},
		{req, fixedRule, `{"limit":{"algorithm":"slidingWindow"}}`, "{t:acme}:u:u1:m:sliding:60"},
		{req, quotaRule, `{"limit":{"period":"day","timezone":"Europe/Paris","overdraft":"once"}}`, "{t:acme}:t::m:quota"},
		{req, gcraRule, `{"subject":{"kind":"endpoint","value":"pay GET   /pay/{id}"}}`, "{s:pay}:e:GET%20/pay/%7Bid%7D:m:gcra:60"},
		{req, gcraRule, `{"limit":null,"unlimited":true}`, "{t:acme}:t::m:quota"},
	} {
		r := parse(t, tc.base, tc.patch)
		if got := keysOf(t, tc.req, r)[r.ID]; got != tc.want {
			t.Errorf("%s: key %q, want %q", tc.patch, got, tc.want)
		}
	}
}

// Tenant a:u with user b, and tenant a with user u:b, are two.
func TestKeysOfLookAlikesDiffer(t *testing.T) {
	t.Parallel()
	r := parse(t, fixedRule, `{"subject":{"value":"*"}}`)
	seen := map[string]string{}
	for _, who := range [][2]string{{"a:u", "b"}, {"a", "u:b"}, {"a", "u%3Ab"}, {"a}", "b"}, {"a", "}b"}, {"a%7D", "b"}, {"t:a", "b"}} {
		key := keysOf(t, &rule.Request{TenantID: who[0], UserID: who[1], Now: at(1)}, r)[r.ID]
		if other, twice := seen[key]; twice || key == "" {
			t.Errorf("%q and %q share key %q", who, other, key)
		}
		seen[key] = fmt.Sprint(who)
		if tag := key[:strings.Index(key, "}")+1]; strings.Count(key, "{") != 1 || strings.Count(tag, ":") != 1 {
			t.Errorf("hash tag of %q is not the tenant's", key)
		}
	}
}

// Both a rate and a quota on one metric hold, and so do two windows; a tenant
// and its user are apart. The order is that of kind, metric and horizon.
func TestGroupsAndOrder(t *testing.T) {
	t.Parallel()
	ix := rule.New()
	err := ix.Replace([]rules.Rule{
		parse(t, quotaRule, `{"id":"month","subject":{"value":"*"}}`),
		parse(t, fixedRule, `{"id":"user"}`),
		parse(t, gcraRule, `{"id":"day","limit":{"window":"24h"}}`),
		parse(t, gcraRule, `{"id":"minute"}`),
		parse(t, gcraRule, `{"id":"minute-acme","subject":{"value":"acme"},"limit":{"algorithm":"fixedWindow","burst":null}}`),
		parse(t, gcraRule, `{"id":"other-metric","metric":"a"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range ix.Match(&rule.Request{TenantID: "acme", UserID: "u1", Service: "s", Now: at(1)}, nil) {
		got = append(got, m.Rule.ID)
	}
	if want := "other-metric minute-acme day month user"; strings.Join(got, " ") != want {
		t.Errorf("winners %q, want %q", got, want)
	}
}

func TestCounterNumbers(t *testing.T) {
	t.Parallel()
	ix := rule.New()
	if err := ix.Put(parse(t, gcraRule, `{"cost":3}`)); err != nil {
		t.Fatal(err)
	}
	m := ix.Match(&rule.Request{TenantID: "acme", Now: at(1)}, nil)
	want := limit.Counter{Key: "{t:acme}:t::m:gcra:60", Algorithm: limit.GCRA, Limit: 30, Burst: 10, Window: time.Minute, Cost: 3}
	if got := m[0].Counter(20); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := ix.Put(parse(t, gcraRule, `{}`)); err != nil {
		t.Fatal(err)
	}
	m = ix.Match(&rule.Request{TenantID: "acme", Now: at(1)}, m[:0])
	if got := m[0].Counter(20); got.Cost != 20 {
		t.Errorf("cost %d, want the request's own 20", got.Cost)
	}
}

func TestBadRuleKeepsLastGoodAndDisturbsNobody(t *testing.T) {
	t.Parallel()
	ix := rule.New()
	var good []rules.Rule
	for i := range 1000 {
		good = append(good, parse(t, quotaRule, fmt.Sprintf(`{"id":"r%d","subject":{"value":"t%d"}}`, i, i)))
	}
	if err := ix.Replace(good); err != nil {
		t.Fatal(err)
	}
	bad := append([]rules.Rule(nil), good...)
	bad[500].Limit = &rules.Limit{Algorithm: "ofTheFuture"}
	bad = append(bad, rules.Rule{ID: "new and bad"})
	err := ix.Replace(bad)
	var invalid *rule.InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "r500") || !strings.Contains(err.Error(), "new and bad") {
		t.Fatalf("error %v", err)
	}
	if err := ix.Put(bad[500]); !errors.As(err, &invalid) || invalid.ID != "r500" {
		t.Fatalf("error %v", err)
	}
	for i := range 1000 {
		if m := ix.Match(&rule.Request{TenantID: fmt.Sprintf("t%d", i), Now: at(1)}, nil); len(m) != 1 {
			t.Fatalf("tenant %d has %d rules", i, len(m))
		}
	}
	if ix.Len() != 1000 {
		t.Errorf("%d rules, want 1000", ix.Len())
	}
}

// A rule that moves to another subject or value is never missing on its way,
// nor is one that is written again in place.
func TestMatchBesideWriters(t *testing.T) {
	t.Parallel()
	ix := rule.New()
	versions := []rules.Rule{
		parse(t, quotaRule, `{}`), parse(t, quotaRule, `{"subject":{"value":"*"}}`),
		parse(t, quotaRule, `{"scope":{"service":"s"}}`), parse(t, quotaRule, `{"subject":{"value":"*"},"scope":{"service":"s"}}`),
	}
	if err := ix.Put(versions[0]); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			var dst []rule.Match
			for {
				select {
				case <-done:
					return
				default:
				}
				dst = ix.Match(&rule.Request{TenantID: "acme", Service: "s", Now: at(1)}, dst[:0])
				if len(dst) != 1 {
					t.Errorf("%d winners, want 1", len(dst))
					return
				}
			}
		})
	}
	for i := range 2000 {
		if err := ix.Put(versions[i%len(versions)]); err != nil {
			t.Error(err)
		}
		if i%100 == 0 {
			ix.ReplaceCompiled(ix.All())
		}
	}
	close(done)
	wg.Wait()
}
