package journal

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

	"golang.org/x/sys/unix"
)

// stateDisk is what a test makes of the state's file.
type stateDisk struct {
	stateFile
	takes  int    // bytes of each write, the rest is refused; below 0 it takes all
	synced error  // of Sync, which touches no disk
	asked  []byte // what was written last
}

func (d *stateDisk) WriteAt(b []byte, at int64) (int, error) {
	d.asked = bytes.Clone(b)
	if d.takes < 0 || len(b) <= d.takes {
		return d.stateFile.WriteAt(b, at)
	}
	n, err := d.stateFile.WriteAt(b[:d.takes], at)
	return n, errors.Join(err, syscall.ENOSPC)
}

func (d *stateDisk) Sync() error { return d.synced }

// said is a state without what it lies in.
func said(s *state) state {
	return state{id: s.id, intent: s.intent, done: s.done, epoch: s.epoch, process: s.process, boot: s.boot}
}

// A state is written in steps that a kill tears at any byte: the next process
// finds the one before or the one after, that one where its write was whole, and
// goes on from there.
func TestStatesSurviveAKillInAnyWrite(t *testing.T) {
	dir := t.TempDir()
	s, err := loadState(dir, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close() //nolint:errcheck // the test is over
	d := &stateDisk{stateFile: s.file, takes: -1}
	s.file = d
	steps := []struct {
		name string
		do   func() error
	}{
		{"start", func() error { _, err := s.start(3); return err }},
		{"intend", func() error { return s.intend(7, 5) }},
		{"done", func() error { s.done = 7; return s.save() }},
		{"intend again", func() error { return s.intend(1<<50, 6) }},
		{"renew", func() error { s.renew(); return s.save() }},
	}
	for _, step := range steps {
		before := *s
		for d.takes = range recordBytes {
			*s = before
			if err := step.do(); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s, torn at %d: %v", step.name, d.takes, err)
			}
			want := before.encode()
			if there(t, d, before.seq+1) == string(d.asked) {
				want = [recordBytes]byte(d.asked) // the bytes that are missing were there
			}
			if got := found(t, d).encode(); got != want {
				t.Fatalf("%s, torn at %d: % x, want % x", step.name, d.takes, got, want)
			}
		}
		*s, d.takes = before, -1
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := found(t, d); got.seq != before.seq+1 || said(got) != said(s) || said(got) == said(&before) {
			t.Fatalf("%s: %+v, want %+v", step.name, got, s)
		}
	}
}

// there is what lies in the place of a number.
func there(t *testing.T, f stateFile, seq uint64) string {
	t.Helper()
	var b [recordBytes]byte
	if _, err := f.ReadAt(b[:], statePlace(seq)); err != nil {
		t.Fatal(err)
	}
	return string(b[:])
}

// found is what the next process finds, whose disk takes what it writes.
func found(t *testing.T, f stateFile) *state {
	t.Helper()
	if d, ok := f.(*stateDisk); ok {
		f = &stateDisk{stateFile: d.stateFile, takes: -1}
	}
	s, err := readState(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// All of the file is on disk once it is made, also of what nothing is in yet.
func TestTheStateHasItsRoomFromTheStart(t *testing.T) {
	dir := t.TempDir()
	s, err := loadState(dir, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, stateName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	if hole, err := unix.Seek(int(f.Fd()), 0, unix.SEEK_HOLE); err != nil || hole != stateBytes {
		t.Errorf("data up to %d of %d, %v", hole, stateBytes, err)
	}
}

// No start after the first makes another file; one that would says where and how
// much room that takes.
func TestTheStateStaysInItsFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, dir := newLedger(), t.TempDir()
		path := filepath.Join(dir, stateName)
		killed(t, open(t, dir, l, nil))
		was, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		// A file of that name cannot be made any more.
		if err := os.Mkdir(path+".tmp", 0o700); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			s := open(t, dir, l, nil)
			s.Append(noon, ofA(1))
			settle(t, s)
		}
		l.want(t, map[string]int64{julyOfA: 3})
		if is, err := os.Stat(path); err != nil || !os.SameFile(was, is) || is.Size() != stateBytes {
			t.Errorf("%v: the state lies in another file", err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		_, err = Open(Options{Dir: dir, SizeBytes: 1 << 20, Gateway: "gw", Store: l})
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), fmt.Sprint(stateBytes)+" bytes") {
			t.Errorf("a first start without a file: %v", err)
		}
	})
}

// While the end of a stretch cannot be written nothing of it is charged, however
// often it is tried: a process that dies then would not know what it had charged,
// and the next would charge it once more, with what has come in since.
func TestNothingIsChargedBeforeItsEndIsOnDisk(t *testing.T) {
	for name, d := range map[string]stateDisk{
		"nothing is taken": {},
		"half is":          {takes: recordBytes / 2},
		"all but a byte":   {takes: recordBytes - 1},
		"not known":        {takes: recordBytes, synced: syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, dir := newLedger(), t.TempDir()
				s := open(t, dir, l, nil)
				s.Append(noon, ofA(1))
				d.stateFile = s.state.file
				s.state.file = &d
				for range 3 {
					if _, err := s.stretch(t.Context()); err == nil {
						t.Fatal("settled")
					}
				}
				l.want(t, nil)
				killed(t, s)
				s = open(t, dir, l, nil)
				s.Append(noon, ofA(10))
				settle(t, s)
				l.want(t, map[string]int64{julyOfA: 11})
			})
		})
	}
}

// What was charged is not charged once more where that it was is torn, or not known
// to be on disk.
func TestAStretchIsChargedOnceWhereverItsEndIsTorn(t *testing.T) {
	for _, takes := range []int{0, 1, 8, 16, 20, 32, recordBytes - 1, recordBytes} {
		synctest.Test(t, func(t *testing.T) {
			l, dir := newLedger(), t.TempDir()
			s := open(t, dir, l, nil)
			s.Append(noon, ofA(1))
			d := &stateDisk{stateFile: s.state.file, takes: -1}
			s.state.file = d
			l.watch = func(step string) {
				if step == "settled" {
					d.takes, d.synced = takes, syscall.EIO
				}
			}
			if _, err := s.stretch(t.Context()); err == nil {
				t.Error("the end of a stretch was written")
			}
			l.watch = nil
			killed(t, s)
			for range 2 {
				s = open(t, dir, l, nil)
				s.Append(noon, ofA(10))
				settle(t, s)
			}
			l.want(t, map[string]int64{julyOfA: 21})
		})
	}
}

// A state that is damaged in both its places, or is another file, is begun anew,
// and the log says so.
func TestADamagedStateIsBegunAnew(t *testing.T) {
	for name, content := range map[string][]byte{
		"zeros": make([]byte, stateBytes), "empty": {}, "short": make([]byte, 100), "long": make([]byte, stateBytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, stateName)
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			s, err := loadState(dir, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer s.close() //nolint:errcheck // the test is over
			if got := found(t, s.file); said(got) != said(s) || s.id == "" {
				t.Errorf("%+v on disk, want %+v", got, s)
			}
			if !strings.Contains(log.String(), path) {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
}
