package gateway

import (
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
)

func TestTrustedCallersNameTheCost(t *testing.T) {
	t.Parallel()
	dear := int64(20)
	services := []catalog.Service{{Name: "demo", Prefix: "/demo/", Endpoints: []catalog.Endpoint{{Pattern: "/demo/export", Cost: &dear}}}}
	for _, c := range []struct {
		trusted bool
		path    string
		headers []string
		want    int64 // -1: refused
	}{
		{true, "/demo/x", nil, 1},
		{true, "/demo/x", []string{"Sluice-Cost", "7"}, 7},
		{true, "/demo/x", []string{"Sluice-Cost", "0"}, 0},
		{true, "/demo/export", nil, 20},
		{true, "/demo/export", []string{"Sluice-Cost", "3"}, 3},
		{true, "/demo/x", []string{"Sluice-Cost", "9007199254740992"}, limit.MaxInteger},
		{true, "/demo/x", []string{"Sluice-Cost", "9007199254740993"}, -1},
		{true, "/demo/x", []string{"Sluice-Cost", "-1"}, -1},
		{true, "/demo/x", []string{"Sluice-Cost", ""}, -1},
		{true, "/demo/x", []string{"Sluice-Cost", "1", "Sluice-Cost", "1"}, -1},
		{true, "/demo/x", []string{"Sluice_Cost", "7"}, 1},
		{false, "/demo/x", []string{"Sluice-Cost", "0"}, 1},
		{false, "/demo/export", []string{"Sluice-Cost", "0"}, 20},
		{false, "/demo/x", []string{"Sluice-Cost", "lots", "Sluice-Cost", "2"}, 1},
	} {
		o := standOptions{catalog: services}
		if c.trusted {
			o.trusted = []string{loopback}
		}
		s := newStand(t, o)
		a := s.get(c.path, c.headers...)
		if c.want < 0 {
			if p := a.problem(t); a.StatusCode != http.StatusBadRequest || !strings.Contains(p.Detail, identify.HeaderCost) || len(s.events()) > 0 {
				t.Errorf("%+v: %d %s", c, a.StatusCode, a.body)
			}
			continue
		}
		if e := s.event(); a.StatusCode != 200 || e.Cost != c.want {
			t.Errorf("%+v: %d, cost %d", c, a.StatusCode, e.Cost)
		}
		for name := range s.last().Header {
			if strings.HasPrefix(name, "Sluice") {
				t.Errorf("%+v: the service got %s", c, name)
			}
		}
	}
}

func FuzzParseCost(f *testing.F) {
	for _, s := range []string{"", "0", "1", "007", "-1", "+1", "1.0", "1e3", " 1", "0x10", "١", "9007199254740992", "9007199254740993", "99999999999999999999999999", "1,2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := identify.ParseCost(s)
		digits := s != "" && strings.Trim(s, "0123456789") == ""
		n, isNumber := new(big.Int).SetString(s, 10)
		want := digits && isNumber && n.Cmp(big.NewInt(limit.MaxInteger)) <= 0
		if ok != want || (ok && big.NewInt(got).Cmp(n) != 0) || (!ok && got != 0) {
			t.Errorf("%q is %d, %t; want %t", s, got, ok, want)
		}
	})
}
