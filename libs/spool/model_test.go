package spool

import (
	"fmt"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// model is a FIFO; how much fits is the ring's affair, so the model learns
// from Append how many were dropped and checks that they were the oldest.
type model struct {
	queue   []string // not acknowledged, oldest first
	handed  int      // of these, returned by Next
	dropped uint64
}

func TestSpoolAgreesWithAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "spool-model")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
		o := Options{Dir: dir, SizeBytes: 2*pageBytes + MinShardBytes, Shards: 1}
		s := mustOpen(t, o)
		defer func() { _ = s.Close() }()
		var m model
		var mark Mark
		marked, number := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				size := rapid.IntRange(0, s.MaxRecord()-40).Draw(t, "size")
				key := rapid.StringN(0, 5, 20).Draw(t, "key")
				number++
				value := fmt.Sprintf("%08d%s", number, make([]byte, size))
				n := s.AppendKeyed(key, []byte(value))
				if n > len(m.queue) {
					t.Fatalf("dropped %d of %d", n, len(m.queue))
				}
				m.queue = append(m.queue[n:], key+"|"+value)
				m.handed = max(0, m.handed-n)
				marked = max(0, marked-n)
				m.dropped += uint64(n)
			},
			"next": func(t *rapid.T) {
				records, got := s.Next(rapid.IntRange(1, 7).Draw(t, "limit"))
				if len(records) == 0 && m.handed < len(m.queue) {
					t.Fatalf("nothing returned, %d wait", len(m.queue)-m.handed)
				}
				for _, r := range records {
					if want := m.queue[m.handed]; string(r.Key)+"|"+string(r.Value) != want {
						t.Fatalf("got %.20q, want %.20q", r.Value, want)
					}
					m.handed++
				}
				if len(records) > 0 {
					mark, marked = got, m.handed
				}
			},
			"advance": func(t *rapid.T) {
				s.Advance(mark)
				m.queue, m.handed, marked = m.queue[marked:], m.handed-marked, 0
				mark = Mark{}
			},
			"rewind": func(t *rapid.T) { s.Rewind(); m.handed = 0; mark, marked = Mark{}, 0 },
			"reopen": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = mustOpen(t, o)
				m.handed, mark, marked = 0, Mark{}, 0
			},
			"": func(t *rapid.T) {
				if st := s.Stats(); st.Pending != uint64(len(m.queue)) || st.Dropped != m.dropped {
					t.Fatalf("stats %+v, want %d pending and %d dropped", st, len(m.queue), m.dropped)
				}
			},
		})
	})
}

func mustOpen(t interface {
	Helper()
	Fatal(...any)
}, o Options) *Spool {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
