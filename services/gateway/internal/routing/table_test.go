package routing

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/stream"
)

// The longest prefix by whole segments wins, as a scan of all would say.
func TestRoutesAgreeWithAScan(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	path := func(longest int) string {
		var b strings.Builder
		for range random.IntN(longest + 1) {
			fmt.Fprintf(&b, "/%c", 'a'+rune(random.IntN(3)))
		}
		return b.String()
	}
	r := NewTable(slog.New(slog.DiscardHandler))
	for step := range 3000 {
		name := fmt.Sprintf("s%d", random.IntN(20))
		if random.IntN(4) == 0 {
			r.Apply(stream.Change[*Service]{Key: name, Deleted: true})
		} else {
			r.Apply(stream.Change[*Service]{Key: name, Entry: stream.Entry[*Service]{Value: &Service{Name: name, Prefix: path(4)}}})
		}
		asked := path(6)
		if random.IntN(3) == 0 || asked == "" {
			asked += "/"
		}
		if got, want := r.Find(asked), scan(r.services, asked); got != want {
			t.Fatalf("step %d: %s goes to %+v, want %+v", step, asked, got, want)
		}
	}
}

func scan(services map[string]*Service, path string) *Service {
	var best *Service
	for _, s := range services {
		if path != s.Prefix && !strings.HasPrefix(path, s.Prefix+"/") {
			continue
		}
		if best == nil || len(s.Prefix) > len(best.Prefix) || (s.Prefix == best.Prefix && s.Name < best.Name) {
			best = s
		}
	}
	return best
}

func TestUpstreamsAreChosenByWeight(t *testing.T) {
	t.Parallel()
	s, err := DecodeService("s", []byte(`{"name":"s","prefix":"/s/","upstreams":[
		{"url":"http://never","weight":0},{"url":"http://one"},{"url":"http://three/base/","weight":3}]}`))
	if err != nil {
		t.Fatal(err)
	}
	const n = 40_000
	got := map[string]int{}
	for range n {
		got[s.Pick().host]++
	}
	if got["never"] != 0 || got["one"]+got["three"] != n {
		t.Fatalf("chosen %v", got)
	}
	// 10 standard deviations of a binomial of n and 1/4.
	if off := got["one"] - n/4; off < -870 || off > 870 {
		t.Errorf("weight 1 of 4 was chosen %d times of %d", got["one"], n)
	}
	if s.upstreams[2].base != "/base" {
		t.Errorf("base is %q", s.upstreams[2].base)
	}
	if none, err := DecodeService("s", []byte(`{"name":"s","prefix":"/","upstreams":[{"url":"http://a","weight":0}]}`)); err != nil || none.Pick() != nil {
		t.Errorf("a service whose weights are 0 picks %v (%v)", none.Pick(), err)
	}
}

func TestDecodeServiceRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`[]`, `{"prefix":"demo"}`, `{"prefix":"/a/","upstreams":[{"url":"ftp://a"}]}`, `{"prefix":"/a/","upstreams":[{"url":"http://"}]}`,
		`{"prefix":"/a/","upstreams":[{"url":"http://a","weight":-1}]}`, `{"prefix":"/a/","upstreams":[{"url":"http://%zz"}]}`,
		`{"prefix":"/a/","endpoints":[{"pattern":"GET a"}]}`,
	} {
		if s, err := DecodeService("s", []byte(text)); err == nil {
			t.Errorf("%s is taken as %+v", text, s)
		}
	}
}
