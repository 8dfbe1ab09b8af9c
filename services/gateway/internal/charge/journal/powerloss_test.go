package journal

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
)

const ringName = "spool.ring"

// power is a machine that may crash: of the ring, which is written in memory, the
// disk has for certain what there was at the last sync.
type power struct {
	t       *testing.T
	s       *Journal
	dir     string
	l       *ledger
	disk    []byte
	syncs   int
	fails   int // the sync that does, from 1
	crashes []crash
}

// crash is what one leaves: a folder, and what the store has charged by then.
type crash struct {
	when, dir string
	l         *ledger
}

func powered(t *testing.T, l *ledger) *power {
	t.Helper()
	p := &power{t: t, dir: t.TempDir(), l: l}
	p.s = open(t, p.dir, l, nil)
	p.disk = p.ring()
	synced := p.s.sync
	p.s.sync = func() error {
		if p.syncs++; p.syncs == p.fails {
			return syscall.EIO
		}
		err := synced()
		p.disk = p.ring()
		return err
	}
	p.s.state.file = crashingState{p.s.state.file, p}
	l.watch = func(step string) { p.crash(step) }
	return p
}

func (p *power) ring() []byte {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, ringName))
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// crash notes what a crash at this instant leaves: the ring of the last sync, or
// all that is in memory.
func (p *power) crash(when string) {
	p.t.Helper()
	for name, ring := range map[string][]byte{"synced": p.disk, "written back": p.ring()} {
		l := newLedger()
		l.last, l.charged = maps.Clone(p.l.last), maps.Clone(p.l.charged)
		c := crash{when: fmt.Sprint(len(p.crashes)/2, " ", when, ", ", name), dir: image(p.t, p.dir), l: l}
		writeFile(p.t, filepath.Join(c.dir, ringName), ring)
		p.crashes = append(p.crashes, c)
	}
}

// crashingState is a state after each write of which the machine may crash.
type crashingState struct {
	stateFile
	p *power
}

func (c crashingState) WriteAt(b []byte, at int64) (int, error) {
	n, err := c.stateFile.WriteAt(b, at)
	c.p.crash("state written")
	return n, err
}

// The machine crashes at any step of two stretches, where a sync of the ring may
// have failed, and the disk has the ring as it was at the last one that did not: what
// was charged is not charged once more, nor is what comes in later taken for it.
func TestAStretchIsChargedOnceWhereTheMachineCrashes(t *testing.T) {
	for fails := range 5 {
		t.Run(fmt.Sprint("sync ", fails, " fails"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := powered(t, newLedger())
				p.fails = fails
				for n := range int64(2) {
					for range 5 {
						p.s.Append(noon, ofA(1))
					}
					p.settle()
					p.l.want(t, map[string]int64{julyOfA: 5 * (n + 1)})
					p.check(5 * (n + 1))
				}
				killed(t, p.s)
			})
		})
	}
}

// settle charges all there is, and goes on after an error as Run does.
func (p *power) settle() {
	p.t.Helper()
	for range 2 {
		if _, err := p.s.stretch(p.t.Context()); err != nil {
			p.s.spool.Rewind()
		}
	}
}

// check has the next process go on after each crash, and a request come in.
func (p *power) check(charged int64) {
	p.t.Helper()
	if len(p.crashes) == 0 {
		p.t.Fatal("nothing was written")
	}
	for _, c := range p.crashes {
		s := open(p.t, c.dir, c.l, nil)
		s.Append(noon, ofA(100))
		settle(p.t, s)
		if n := c.l.charged[julyOfA]; n != charged+100 {
			p.t.Errorf("crash %s: %d charged, want %d", c.when, n, charged+100)
		}
	}
	p.crashes = nil
}
