package rule_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// records is rules as a platform has them: a few for everybody, endpoints of a
// service with costs of their own, and for the rest tenants' own numbers. They
// are texts as the topic holds them.
func records(tb testing.TB, n int) [][]byte {
	tb.Helper()
	rs := []rules.Rule{
		parse(tb, gcraRule, `{"id":"all"}`), parse(tb, quotaRule, `{"id":"month","subject":{"value":"*"}}`),
		parse(tb, fixedRule, `{"id":"users","subject":{"value":"*"}}`),
		parse(tb, gcraRule, `{"id":"svc","subject":{"kind":"service","value":"pay"},"scope":{"service":"pay"}}`),
		parse(tb, gcraRule, `{"id":"ep","subject":{"kind":"endpoint","value":"*"},"scope":{"service":"pay","endpoint":"GET /pay/{id}"}}`),
		parse(tb, gcraRule, `{"id":"key","metric":"k","subject":{"kind":"apiKey","value":"*"}}`),
		parse(tb, gcraRule, `{"id":"app","metric":"a","subject":{"kind":"application","value":"*"}}`),
	}
	for i := range min(5000, n/20) {
		r := parse(tb, gcraRule, `{}`)
		r.ID, r.Scope = fmt.Sprintf("endpoint-%d", i), rules.Scope{Service: "pay", Endpoint: fmt.Sprintf("GET /pay/area%d/{id}/items", i)}
		rs = append(rs, r)
	}
	bases := []string{gcraRule, quotaRule, fixedRule}
	var templates [3]rules.Rule
	for i := range bases {
		templates[i] = rule.Normalize(parse(tb, bases[i], `{}`))
	}
	texts := make([][]byte, 0, n)
	for i := range n {
		var r rules.Rule
		if i < len(rs) {
			r = rule.Normalize(rs[i])
		} else {
			r = templates[i%3]
			l := *r.Limit
			own := int64(10 + i%1000)
			l.Limit, r.Limit = &own, &l
			r.ID, r.Subject.Value = fmt.Sprintf("rule-%07d", i), fmt.Sprintf("tenant-%d", i/3)
			if i%3 == 2 {
				r.Subject.Value += "/user-1"
			}
		}
		r.Version = int64(i + 1)
		text, err := json.Marshal(r)
		if err != nil {
			tb.Fatal(err)
		}
		texts = append(texts, text)
	}
	return texts
}

func compiled(tb testing.TB, texts [][]byte) []*rule.Compiled {
	tb.Helper()
	all := make([]*rule.Compiled, len(texts))
	for i, text := range texts {
		c, err := rule.Decode(text)
		if err != nil {
			tb.Fatal(err)
		}
		all[i] = c
	}
	return all
}

func world(tb testing.TB, n int) *rule.Index {
	tb.Helper()
	ix := rule.New()
	ix.ReplaceCompiled(compiled(tb, records(tb, n)))
	return ix
}

// million is made once, of all benchmarks that ask for it.
var million = sync.OnceValue(func() [][]byte { return records(&testing.B{}, 1_000_000) })

func requests(n int) []*rule.Request {
	reqs := make([]*rule.Request, 4096)
	for i := range reqs {
		reqs[i] = &rule.Request{
			TenantID: fmt.Sprintf("tenant-%d", rand.IntN(n/3)), UserID: "user-1", ApplicationID: "app", APIKeyID: "k1",
			Service: "pay", Endpoint: "GET /pay/{id}", Method: "GET", Path: "/pay/7", Now: at(1),
		}
	}
	return reqs
}

func TestMatchDoesNotAllocate(t *testing.T) {
	ix, dst := world(t, 3000), make([]rule.Match, 0, 16)
	o, err := rule.CompileOverride(parseOverride(t, `{"subject":{"kind":"user","value":"tenant-700/user-1"},"metric":"m","limit":1}`))
	if err != nil {
		t.Fatal(err)
	}
	ix.PutOverride(o)
	req := requests(3)[0]
	req.TenantID = "tenant-700"
	for path, want := range map[string]int{"/pay/7": 7, "/pay/area7/x/items": 6} {
		req.Path = path
		if n := testing.AllocsPerRun(100, func() { dst = ix.Match(req, dst[:0]) }); n != 0 || len(dst) != want {
			t.Errorf("%s: %g allocations for %d winners, want 0 for %d", path, n, len(dst), want)
		}
	}
}

func parseOverride(tb testing.TB, text string) overrides.Override {
	tb.Helper()
	var o overrides.Override
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		tb.Fatal(err)
	}
	return o
}

func BenchmarkMatchMillion(b *testing.B) {
	ix, reqs := rule.New(), requests(1_000_000)
	ix.ReplaceCompiled(compiled(b, million()))
	for _, bench := range []struct{ name, path string }{{"SixDimensions", "/pay/7"}, {"OneOf5000Patterns", "/pay/area4711/x/items"}} {
		for _, r := range reqs {
			r.Path = bench.path
		}
		b.Run(bench.name, func(b *testing.B) { benchMatch(b, ix, reqs) })
	}
	o, err := rule.CompileOverride(parseOverride(b, `{"subject":{"kind":"tenant","value":"tenant-1"},"metric":"m","limit":1}`))
	if err != nil {
		b.Fatal(err)
	}
	ix.PutOverride(o)
	b.Run("WithOverrides", func(b *testing.B) { benchMatch(b, ix, reqs) })
}

// benchMatch reports processor time, too: on a machine that others use, the
// clock says little.
func benchMatch(b *testing.B, ix *rule.Index, reqs []*rule.Request) {
	b.Helper()
	b.ReportAllocs()
	dst := make([]rule.Match, 0, 16)
	before := processorTime(b)
	for i := 0; b.Loop(); i++ {
		dst = ix.Match(reqs[i%len(reqs)], dst[:0])
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkPutMillion(b *testing.B) {
	ix := rule.New()
	all := compiled(b, million())
	ix.ReplaceCompiled(all)
	b.Run("InPlace", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			ix.PutCompiled(all[i*7919%len(all)])
		}
	})
	r := parse(b, quotaRule, `{"id":"mover"}`)
	b.Run("ToAnotherSubject", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			r.Subject.Value = fmt.Sprintf("tenant-%d", i%300_000)
			if err := ix.Put(r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLoadMillion is what a start does with the topic's records, Kafka's
// part left out; B/rule is what the index takes, with the compiled rules.
func BenchmarkLoadMillion(b *testing.B) {
	texts := million()
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		before := heap()
		b.StartTimer()
		ix := rule.New()
		ix.ReplaceCompiled(compiled(b, texts))
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/float64(len(texts)), "B/rule")
		if ix.Len() != len(texts) {
			b.Fatalf("%d rules", ix.Len())
		}
		b.StartTimer()
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The million's figure, at a size that every test run can afford.
func TestMemoryPerRule(t *testing.T) {
	const n = 60_000
	texts := records(t, n)
	before := heap()
	ix := rule.New()
	ix.ReplaceCompiled(compiled(t, texts))
	if per := (heap() - before) / n; per > 400 {
		t.Errorf("%d B a rule, want at most 400", per)
	}
	runtime.KeepAlive(ix)
}

func BenchmarkMatchThousands(b *testing.B) {
	benchMatch(b, world(b, 3000), requests(3000))
}

func BenchmarkDecode(b *testing.B) {
	texts := records(b, 3000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := rule.Decode(texts[i%len(texts)]); err != nil {
			b.Fatal(err)
		}
	}
}
