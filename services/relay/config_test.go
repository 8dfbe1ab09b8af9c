package relay

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/outbox"
)

func TestConfigIsRefusedByName(t *testing.T) {
	for key, spoil := range map[string]func(*Config){
		"relay.slot":           func(c *Config) { c.Slot = "Sluice'; --" },
		"relay.mirrorEvery":    func(c *Config) { c.MirrorEvery = 0 },
		"relay.reconcileEvery": func(c *Config) { c.ReconcileEvery = -time.Second },
		"relay.standbyEvery":   func(c *Config) { c.StandbyEvery = 0 },
	} {
		cfg := DefaultConfig()
		spoil(&cfg)
		if _, err := New(cfg, Deps{}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: err = %v", key, err)
		}
	}
	s, err := New(DefaultConfig(), Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(); err == nil {
		t.Error("a relay that does not run is ready")
	}
	if other, _ := New(DefaultConfig(), Deps{}); other.cfg.Instance == s.cfg.Instance {
		t.Error("two relays have one name")
	}
}

// A position is confirmed, and a row deleted, only when everything before has
// landed, in whatever order the acknowledgements come.
func TestFlightConfirmsInOrder(t *testing.T) {
	f := newFlight()
	now := time.Now()
	a, b := f.depart(1, now), f.depart(2, now)
	f.pass(100, now)
	c := f.depart(3, now)
	f.pass(200, now)
	f.land(b, false)
	f.land(c, true)
	if f.position() != 0 || len(f.takeCarried()) != 0 {
		t.Fatal("something passed a row that has not landed")
	}
	f.land(a, false)
	if got := f.takeCarried(); f.position() != outbox.LSN(200) || len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Fatalf("confirmed %v, carried %v; want 200 and rows 1 and 2 (3 is parked)", f.position(), got)
	}
	if f.len() != 0 || f.oldest(now.Add(time.Hour)) != 0 {
		t.Fatal("the flight is not empty")
	}
}
