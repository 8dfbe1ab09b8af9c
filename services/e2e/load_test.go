//go:build integration

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// load sends requests in the background and remembers every answered
// decision, so that a test can ask afterwards for each one's document.
type load struct {
	s       *stack
	sent    atomic.Int64
	stop    chan struct{}
	workers sync.WaitGroup

	mu       sync.Mutex
	answered map[string]int // decision id → code
	odd      map[int]int    // codes that nobody should see
	twice    []string       // decision ids that two answers carried
}

func (s *stack) startLoad(workers int) *load {
	l := &load{s: s, stop: make(chan struct{}), answered: map[string]int{}, odd: map[int]int{}}
	for w := range workers {
		l.workers.Go(func() { l.work(w) })
	}
	return l
}

func (l *load) work(w int) {
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		default:
		}
		pause(5 * time.Millisecond)
		g := l.s.gates[(w+i)%len(l.s.gates)]
		got := g.hit("/svc/load", as(fmt.Sprintf("tenant-%d", i%7)))
		l.note(got)
	}
}

// note keeps the answer of a decision. No answer (a killed gateway) is none,
// and 503 without a decision id is a gateway that is not ready yet.
func (l *load) note(got answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := got.header.Get("Sluice-Decision-Id")
	switch {
	case got.code == 0 || (got.code == http.StatusServiceUnavailable && id == ""):
		return
	case got.code != 200 && got.code != 429:
		l.odd[got.code]++
	}
	if _, seen := l.answered[id]; seen || id == "" {
		l.twice = append(l.twice, id)
	}
	l.answered[id] = got.code
	l.sent.Add(1)
}

func (l *load) finish() {
	close(l.stop)
	l.workers.Wait()
}

// writeRules makes, changes and deletes rules until told to stop, at least 50
// times; it returns how many writes the control plane took.
func (s *stack) writeRules(stop <-chan struct{}, pace func()) (writes int) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			if writes >= 50 {
				return writes
			}
		default:
			pace()
		}
		id := fmt.Sprintf("chaos-%d", rand.IntN(15))
		rule := fixed(id, "/svc/"+id, int64(1+rand.IntN(1000)))
		rule.Subject = rules.Subject{Kind: rules.SubjectTenant, Value: fmt.Sprintf("t%d", i)}
		var got answer
		switch rand.IntN(3) {
		case 0:
			got = s.rest("DELETE", "/v1/rules/"+id, anyVersion, nil)
		case 1:
			got = s.rest("PUT", "/v1/rules/"+id, anyVersion, rule)
		default:
			got = s.rest("POST", "/v1/rules", nil, rule)
		}
		if got.code >= 200 && got.code < 300 {
			writes++
		}
	}
}
