package settle

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-platform/sluice/libs/limit"
)

// disk is what a test makes of the slots' file.
type disk struct {
	slotFile
	full bool
	// heads is a full disk, too, on which a slot's first page is there.
	heads bool
	// pages is how many more are written, whole or in part, before the process is
	// killed; below 0 it lives.
	pages int
}

var errKilled = errors.New("killed")

func (d *disk) WriteAt(b []byte, at int64) (n int, err error) {
	if d.full || d.heads && (len(b) > headBytes || at%slotBytes > 0) {
		return 0, syscall.ENOSPC
	}
	const page = 4096
	for n < len(b) {
		if d.pages == 0 {
			panic(errKilled)
		}
		d.pages--
		m, err := d.slotFile.WriteAt(b[n:min(len(b), n+page-int(at+int64(n))%page)], at+int64(n))
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

func onDisk(s *Settler) *disk {
	d := &disk{slotFile: s.holds.file, pages: -1}
	s.holds.file = d
	return d
}

// heldOnDisk are the slots that a start would find taken.
func heldOnDisk(t *testing.T, s *Settler) (slots []int) {
	t.Helper()
	for slot := range s.holds.slots {
		head, err := s.holds.head(slot + 1)
		if err != nil {
			t.Fatal(err)
		}
		if head.state != slotFree {
			slots = append(slots, slot+1)
		}
	}
	return slots
}

// While the disk takes nothing charges are made all the same, what is to come
// back does, and neither slots nor lines of the log grow with the requests. Once
// it takes something again, what could not be ended is.
func TestADiskThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		var log bytes.Buffer
		reg := prometheus.NewRegistry()
		s, err := Open(Options{Dir: dir, SizeBytes: 1 << 20, Gateway: "gw", Store: l, Registerer: reg, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		kept, back, held, lost := decide(t, s, ofA(1)), decide(t, s, ofA(10)), decide(t, s, ofA(100)), decide(t, s, ofA(1000))
		s.Keep(lost)
		d := onDisk(s)
		d.full = true
		s.Keep(kept)
		s.GiveBack(back, noon, ofA(-10))
		for range 1000 {
			if d, h, err := s.Decide(t.Context(), ofA(1), first); err != nil || !d.Allowed || h.slot != 0 {
				t.Fatalf("%+v in slot %d, %v", d, h.slot, err)
			}
		}
		if err := s.takeBackRound(t.Context()); err != nil || s.Pending() != 0 {
			t.Errorf("%v, %d pending", err, s.Pending())
		}
		l.want(t, map[string]int64{julyOfA: 1 + 100 + 1000 + 1000})
		if lines := strings.Count(log.String(), "\n"); len(s.holds.slots) != 4 || lines != 1 {
			t.Errorf("%d slots, %d lines:\n%s", len(s.holds.slots), lines, log.String())
		}
		d.full = false
		s.Keep(decide(t, s, ofA(1)))
		// The counter that an alert looks at.
		n, err := testutil.GatherAndCount(reg, "sluice_settle_unheld_total")
		if unheld := testutil.ToFloat64(s.metrics.unheld); err != nil || n != 1 || unheld != 1000 {
			t.Errorf("%v unheld, %d registered, %v", unheld, n, err)
		}
		if slots := heldOnDisk(t, s); len(slots) != 1 || slots[0] != held.slot {
			t.Errorf("held on disk are %v, want %d", slots, held.slot)
		}
		killed(t, s)
		settle(t, open(t, dir, l, nil))
		l.want(t, map[string]int64{julyOfA: 1 + 1000 + 1000 + 1})
	})
}

// What a decision without an answer may have charged is taken back whole, also
// where the disk does not take all of it.
func TestUnansweredOnADiskThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		s := open(t, t.TempDir(), l, nil)
		d := onDisk(s)
		l.lose = func() (bool, bool) { d.full = true; return true, false }
		if _, h, err := s.Decide(t.Context(), both(1, 5), first); h.slot != 0 || !errors.Is(err, limit.ErrUnavailable) {
			t.Fatalf("slot %d, %v", h.slot, err)
		}
		settle(t, s)
		l.want(t, nil)
	})
}

// Slots that a process has left free are used again by the next, whatever is
// held, and the file ends behind what is.
func TestSlotsLeftFreeAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		l.fail = func() (bool, bool) { return true, true } // what is held stays so
		for start := range 5 {
			s := open(t, dir, l, nil)
			var holds []Hold
			for range 10 {
				holds = append(holds, decide(t, s, ofA(1)))
			}
			for i, h := range holds {
				if i != 4 {
					s.Keep(h)
				}
			}
			if n, most := len(s.holds.slots), 10+start; n > most {
				t.Errorf("%d slots at start %d, want %d at most", n, start, most)
			}
			killed(t, s)
		}
		s := open(t, dir, l, nil)
		info, err := os.Stat(filepath.Join(dir, "holds"))
		if err != nil || s.Pending() != 5 || info.Size() != int64(len(s.holds.slots))*slotBytes || len(s.holds.slots) > 14 {
			t.Errorf("%v, %d pending, %d bytes, %d slots", err, s.Pending(), info.Size(), len(s.holds.slots))
		}
		l.fail = nil
		settle(t, s)
		settle(t, open(t, dir, l, nil))
		if info, err := os.Stat(filepath.Join(dir, "holds")); err != nil || info.Size() != 0 {
			t.Errorf("%v, %d bytes", err, info.Size())
		}
		l.want(t, map[string]int64{julyOfA: 45})
	})
}

// many are as many counters as fill more than a page.
func many(cost int64) (counters []limit.Counter) {
	for i := range 60 {
		counters = append(counters, quota(fmt.Sprintf("{t:a}:quota-with-a-name-of-some-length-%d", i), cost))
	}
	return counters
}

// The process is killed between any two pages of what it writes to a slot: what
// is to come back does, once. What a slot holds is never written over before
// what comes in its place is whole.
func TestSlotsSurviveAKillInAnyWrite(t *testing.T) {
	const all = 1<<60 - 1
	for name, c := range map[string]struct {
		lost bool
		back uint64
	}{"given back": {false, all}, "without an answer": {true, 3}} {
		t.Run(name, func(t *testing.T) {
			for pages, dies := 0, true; dies; pages++ {
				synctest.Test(t, func(t *testing.T) {
					l, dir := newLedger(), t.TempDir()
					l.lose = func() (bool, bool) { return c.lost, false }
					s := open(t, dir, l, nil)
					onDisk(s).pages = pages
					dies = dying(func() {
						_, h, err := s.Decide(t.Context(), many(1), c.back)
						if err == nil {
							s.GiveBack(h, noon, many(-1))
						}
					})
					killed(t, s)
					settle(t, open(t, dir, l, nil))
					for i, counter := range many(1) {
						if n := l.charged[counter.Key+":month:202607"]; n != 0 && (c.back>>i&1 == 1 || n != 1 || !dies) {
							t.Errorf("killed %v after %d pages: %d charged to counter %d", dies, pages, n, i)
						}
					}
				})
			}
		})
	}
}

// dying reports whether a process was killed in the middle of something.
func dying(do func()) (killed bool) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case errKilled:
			killed = true
		default:
			panic(r)
		}
	}()
	do()
	return false
}
