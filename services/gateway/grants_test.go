package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

const (
	prepaid   = `{"algorithm":"quota","kind":"prepaid"}`
	overdraws = `{"algorithm":"quota","kind":"prepaid","overdraft":"once"}`
)

// grant says what was granted to a wallet in all.
func (s *stand) grant(tenant, metric string, units int64) {
	s.t.Helper()
	value, err := json.Marshal(grants.Wallet{ID: grants.WalletID(tenant, metric), TenantID: tenant, Metric: metric, Granted: units})
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := decodeGrants(grants.WalletID(tenant, metric), value)
	if err != nil {
		s.t.Fatal(err)
	}
	s.gate.grants.Apply(stream.Change[grants.Wallet]{Key: w.ID, Entry: stream.Entry[grants.Wallet]{Value: w}})
}

// An empty wallet, or none, is no lack of entitlement, and no time fills it.
func TestEmptyWalletIs429WithoutRetryAfter(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}})
	s.putRule(ruleJSON("units", "tenant", "units", prepaid, ""))
	refused := func() {
		t.Helper()
		a := s.get("/demo/x", acme...)
		p := a.problem(t)
		if _, told := a.Header["Retry-After"]; told || a.StatusCode != http.StatusTooManyRequests || p.Type != reject.QuotaExceeded {
			t.Fatalf("%d %v %s", a.StatusCode, a.Header, a.body)
		}
		if e := s.event(); e.StatusCode != 429 || e.Algo != usage.AlgoPrepaidQuota || e.RuleID != "units" {
			t.Fatalf("%+v", e)
		}
	}
	refused()
	s.grant("other", "units", 5)
	s.grant("acme", "other", 5)
	refused()
	s.grant("acme", "units", 2)
	for left := int64(1); left >= 0; left-- {
		if a := s.get("/demo/x", acme...); a.StatusCode != 200 || !strings.Contains(a.Header.Get("RateLimit"), fmt.Sprintf(`"units";r=%d`, left)) {
			t.Fatalf("%d %v", a.StatusCode, a.Header)
		}
		if c := s.event().Charges[0]; c.Counter != "{t:acme}:t::units:quota" || *c.Limit != 2 || c.Consumed != 2-left {
			t.Fatalf("%+v", c)
		}
	}
	refused()
	s.grant("acme", "units", 3)
	if a := s.get("/demo/x", acme...); a.StatusCode != 200 {
		t.Fatalf("after a top-up %d %s", a.StatusCode, a.body)
	}
}

// Balance 100, cost 200: passes once, to −100; then nothing until a top-up has
// paid that and left something.
func TestOverdraftOnceAtTheGate(t *testing.T) {
	t.Parallel()
	s := newStand(t, standOptions{trusted: []string{loopback}, catalog: []catalog.Service{
		{Name: "demo", Prefix: "/demo/", Endpoints: []catalog.Endpoint{{Pattern: "GET /demo/big", Cost: new(int64(200))}}},
	}})
	s.putRule(ruleJSON("units", "tenant", "units", overdraws, ""))
	for _, step := range []struct {
		granted int64
		want    int
	}{{100, 200}, {100, 429}, {150, 429}, {200, 429}, {201, 200}, {201, 429}} {
		s.grant("acme", "units", step.granted)
		if a := s.get("/demo/big", acme...); a.StatusCode != step.want || step.want == 429 && a.Header.Get("Retry-After") != "" {
			t.Fatalf("with %d granted: %d %v %s", step.granted, a.StatusCode, a.Header, a.body)
		}
	}
	if e := s.events(); e[0].Algo != usage.AlgoOverdraftQuota || e[0].Charges[0].Consumed != 200 || *e[0].Charges[0].Limit != 100 {
		t.Fatalf("%+v", e[0])
	}
}

// What the store does not tell nobody gives out of a wallet, unless the rule is open.
func TestWalletWithoutTheStore(t *testing.T) {
	t.Parallel()
	for loss, want := range map[string]int{"": 503, `,"onStoreLoss":"open"`: 200, `,"onStoreLoss":"local"`: 503} {
		s := newStand(t, standOptions{trusted: []string{loopback}})
		s.putRule(ruleJSON("units", "tenant", "units", prepaid, loss))
		s.grant("acme", "units", 5)
		s.use(limit.NewModel(s.gate.now)).down = limit.ErrUnavailable
		if a := s.get("/demo/x", acme...); a.StatusCode != want {
			t.Errorf("%s: %d, want %d", loss, a.StatusCode, want)
		}
	}
}

func TestGrantTableFollowsItsTopic(t *testing.T) {
	t.Parallel()
	table := newGrantTable()
	wallet := func(tenant string, units int64) grants.Wallet {
		return grants.Wallet{ID: grants.WalletID(tenant, "m"), TenantID: tenant, Metric: "m", Granted: units}
	}
	entries := map[string]stream.Entry[grants.Wallet]{}
	for i := range 1000 {
		w := wallet(fmt.Sprint("t", i), int64(i))
		entries[w.ID] = stream.Entry[grants.Wallet]{Value: w}
	}
	table.Replace(entries)
	var wait sync.WaitGroup
	stop := make(chan struct{})
	wait.Go(func() { // reads beside the changes see a wallet before or after one
		for {
			select {
			case <-stop:
				return
			default:
				if n := table.of("t7", "m"); n < 7 {
					t.Errorf("t7 has %d", n)
					return
				}
			}
		}
	})
	for n := int64(8); n < 500; n++ {
		table.Apply(stream.Change[grants.Wallet]{Key: "t7/m", Entry: stream.Entry[grants.Wallet]{Value: wallet("t7", n)}})
		fresh := wallet(fmt.Sprint("new", n), n)
		table.Apply(stream.Change[grants.Wallet]{Key: fresh.ID, Entry: stream.Entry[grants.Wallet]{Value: fresh}})
	}
	close(stop)
	wait.Wait()
	table.Apply(stream.Change[grants.Wallet]{Key: "t9/m", Deleted: true})
	table.Apply(stream.Change[grants.Wallet]{Key: "nobody/m", Deleted: true})
	for tenant, want := range map[string]int64{"t7": 499, "new400": 400, "t9": 0, "t999": 999, "nobody": 0} {
		if n := table.of(tenant, "m"); n != want {
			t.Errorf("%s has %d, want %d", tenant, n, want)
		}
	}
	table.Replace(nil)
	if n := table.of("t7", "m"); n != 0 {
		t.Errorf("after an empty copy %d", n)
	}
}

func TestBadGrantsKeepTheLast(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`{`, `{"id":"a/m","tenantId":"a","metric":"m","granted":-1}`, `{"id":"a/m","tenantId":"a","metric":"m","granted":9007199254740993}`,
		`{"id":"b/m","tenantId":"b","metric":"m","granted":1}`, `{"id":"a/m","tenantId":"b","metric":"m","granted":1}`,
	} {
		if _, err := decodeGrants("a/m", []byte(value)); err == nil {
			t.Errorf("%s was taken", value)
		}
	}
}
