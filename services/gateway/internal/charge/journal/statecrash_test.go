package journal

import (
	"bytes"
	"slices"
	"syscall"
	"testing"
)

// written is a write that the disk may not have.
type written struct {
	at int64
	b  []byte
	// never is of those that a Sync has failed for: none after it writes them.
	never bool
}

// machine is a file whose writes the disk has for certain once Sync returned
// without an error, and else may have whole, in part, or not, in any order.
type machine struct {
	cache, disk []byte
	pending     []written
	fails       bool // Sync does
	crash       func(disk []byte)
}

func (m *machine) ReadAt(b []byte, at int64) (int, error) {
	return bytes.NewReader(m.cache).ReadAt(b, at)
}

func (m *machine) WriteAt(b []byte, at int64) (int, error) {
	m.pending = append(m.pending, written{at: at, b: bytes.Clone(b)})
	m.crashes(m.disk, m.pending)
	return copy(m.cache[at:], b), nil
}

// crashes is what a crash at this instant may leave, each.
func (m *machine) crashes(disk []byte, pending []written) {
	if len(pending) == 0 {
		m.crash(disk)
		return
	}
	for _, part := range []int{0, 8, 16, 32, recordBytes / 2, recordBytes - 1, recordBytes} {
		left := bytes.Clone(disk)
		copy(left[pending[0].at:], pending[0].b[:part])
		m.crashes(left, pending[1:])
	}
}

func (m *machine) Sync() error {
	if m.fails {
		for i := range m.pending {
			m.pending[i].never = true
		}
		return syscall.EIO
	}
	done := map[int64]bool{}
	for _, w := range m.pending {
		if !w.never {
			copy(m.disk[w.at:], w.b)
			done[w.at] = true
		}
	}
	m.pending = slices.DeleteFunc(m.pending, func(w written) bool { return done[w.at] })
	return nil
}

func (m *machine) Close() error { return nil }

// The machine crashes at any write of a process, whatever the disk had been told
// and refused before, by this process or one before it: it leaves no state that
// is older than the last that was said to be on disk.
func TestStatesSurviveACrashOfTheMachine(t *testing.T) {
	s := newState()
	s.seq = 1
	b := make([]byte, stateBytes)
	r := s.encode()
	copy(b[statePlace(1):], r[:])
	m := &machine{cache: b, disk: bytes.Clone(b)}
	safe := s.seq // what is on disk for certain
	m.crash = func(disk []byte) {
		if s, ok := decodeState(disk); !ok || s.seq < safe {
			t.Fatalf("a crash leaves %+v, and %d was on disk", s, safe)
		}
	}
	for step, fails := range []bool{false, false, true, false, true, true, false} {
		s = found(t, m)
		safe = s.seq
		for i := range 3 {
			m.fails = fails && i == 2
			if err := s.intend(uint64(10*step+i+1), 1); (err != nil) != m.fails {
				t.Fatal(err)
			}
			safe = s.seq
		}
		m.fails = false
	}
}
