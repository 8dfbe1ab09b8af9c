package cache

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// warmResult is what became of one path.
type warmResult uint8

const (
	warmHit      warmResult = iota // it was stored already
	warmMiss                       // it was loaded and stored, by this request or one at the same time
	warmUnstored                   // it was answered and may not be stored
	warmFailed                     // it was refused, or not answered
	warmResults
)

// warmTally counts what became of paths. It is safe for concurrent use.
type warmTally struct {
	all int

	mu      sync.Mutex
	counts  [warmResults]int
	reasons [warmResults]map[string]*warmReason
}

// warmReason is why so many paths were not stored, or failed, and one of them.
type warmReason struct {
	count int
	first warmTarget
}

// add counts an answer and returns how many failed so far.
func (t *warmTally) add(target warmTarget, a warmAnswer) (failed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[a.result]++
	if a.reason != "" {
		if t.reasons[a.result] == nil {
			t.reasons[a.result] = map[string]*warmReason{}
		}
		r := t.reasons[a.result][a.reason]
		if r == nil {
			r = &warmReason{first: target}
			t.reasons[a.result][a.reason] = r
		}
		r.count++
	}
	return t.counts[warmFailed]
}

// line is the state in one line.
func (t *warmTally) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	asked := 0
	for _, n := range t.counts {
		asked += n
	}
	return fmt.Sprintf("%d of %d paths: %d hits, %d misses (now stored), %d not stored, %d errors",
		asked, t.all, t.counts[warmHit], t.counts[warmMiss], t.counts[warmUnstored], t.counts[warmFailed])
}

// answered is the status of which most paths failed, and what may be missing;
// empty where some failed without an answer of the gateway's.
func (t *warmTally) answered() (status string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := 0
	for why, r := range t.reasons[warmFailed] {
		if why == "" || why[0] < '4' || why[0] > '5' { // statuses begin so, nothing else does
			return ""
		}
		if r.count > most {
			most, status = r.count, why
		}
	}
	if strings.HasPrefix(status, "401 ") {
		status += ": the clients' identity may be missing, such as -H 'X-Api-Key: …'"
	}
	return status
}

// print writes the summary: the counts, then each reason with an example.
func (t *warmTally) print(w io.Writer, took time.Duration) {
	fmt.Fprintf(w, "%s, in %s\n", t.line(), took.Round(100*time.Millisecond))
	for _, of := range []struct {
		result warmResult
		name   string
	}{{warmUnstored, "not stored"}, {warmFailed, "error"}} {
		reasons := t.reasons[of.result]
		for _, why := range slices.Sorted(maps.Keys(reasons)) {
			fmt.Fprintf(w, "  %s, %s: %d, such as %s\n", of.name, why, reasons[why].count, reasons[why].first)
		}
	}
}

var errWarmHeader = errors.New("must be 'Name: value'")

// warmHeader reads 'Name: value'. A header may be a secret: errors say only
// which one it is.
func warmHeader(lines []string) (http.Header, error) {
	header := http.Header{"User-Agent": {"sluice-cache-warm"}}
	given := http.Header{}
	for i, line := range lines {
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !found || name == "" || strings.ContainsFunc(name, notInFieldName) || strings.ContainsFunc(value, notInFieldValue) {
			return nil, fmt.Errorf("--header, the %d. one: %w", i+1, errWarmHeader)
		}
		given.Add(name, value)
	}
	maps.Copy(header, given)
	return header, nil
}

// notInFieldName: names are tokens (RFC 9110, section 5.6.2).
func notInFieldName(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

func notInFieldValue(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// warmAnswer is what the gateway did for one path, and why.
type warmAnswer struct {
	result warmResult
	reason string
}
