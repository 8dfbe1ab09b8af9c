package cache

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// warmTarget is what is asked for once: a path with its query, and the host, if
// it is not that of the headers.
type warmTarget struct{ host, path string }

func (t warmTarget) String() string { return t.host + t.path }

// readTargets reads a list of paths; - is standard input.
func readTargets(name string, stdin io.Reader) ([]warmTarget, error) {
	targets, _, err := countTargets(name, stdin)
	return targets, err
}

// countTargets says besides how often each path stands there.
func countTargets(name string, stdin io.Reader) ([]warmTarget, map[warmTarget]int, error) {
	in := stdin
	if name == "-" {
		name = "standard input"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return nil, nil, err // names the path
		}
		defer file.Close()
		in = file
	}
	var targets []warmTarget
	seen := map[warmTarget]int{}
	lines := bufio.NewScanner(in)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		target, err := parseTarget(line)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: line %d: %w", name, number, err)
		}
		if seen[target]++; seen[target] == 1 {
			targets = append(targets, target)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(targets) == 0 {
		return nil, nil, fmt.Errorf("%s: holds no path", name)
	}
	return targets, seen, nil
}

func parseTarget(line string) (warmTarget, error) {
	bad := func(why string) (warmTarget, error) {
		return warmTarget{}, fmt.Errorf("must be /path?query or host/path?query, not %q: %s", line, why)
	}
	host, path, found := strings.Cut(line, "/")
	path = "/" + path
	u, err := url.Parse(path)
	switch {
	case strings.Contains(line, "://"):
		return bad("leave out the scheme; --gateway says where to ask")
	case !found:
		return bad("it holds no /")
	case strings.ContainsAny(line, " \t"):
		return bad("it holds blanks; write them as %20")
	case strings.Contains(line, "#"):
		return bad("what follows # is never sent")
	case strings.ContainsAny(host, "?@\\"):
		return bad("what is before the first / is no host")
	case err != nil || u.Host != "":
		return bad("it is no path")
	}
	return warmTarget{host: host, path: path}, nil
}

// hottest asks the usage store which paths clients asked for most often.
type hottest struct {
	top, events int
	since       time.Duration
	service     string
}

func (q *hottest) check() error {
	switch {
	case q.top < 1:
		return fmt.Errorf("--top must be at least 1, not %d", q.top)
	case q.events < 1 || q.events > 1_000_000:
		return fmt.Errorf("--events must be 1 to 1000000, not %d", q.events)
	case q.since <= 0:
		return fmt.Errorf("--since must be above 0, such as 1h, not %s", q.since)
	}
	return nil
}

var errNothingHot = errors.New("no usage event of that time names a path that can be asked for: give more time (--since), or a list (--file)")

// newest reads the events to count, and says on stderr which of that time it left out.
func (q *hottest) newest(ctx context.Context, c *rest.Connection, now time.Time, stderr io.Writer) ([]usage.Event, error) {
	query := url.Values{"from": {now.Add(-q.since).UTC().Format(time.RFC3339)}}
	events, err := rest.All[usage.Event](ctx, c, "/v1/usage", query, q.events)
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	if len(events) == q.events {
		fmt.Fprintf(stderr, "counted the newest %d events only, back to %s (--events)\n", len(events), events[len(events)-1].TS.UTC().Format(command.TableTime))
	}
	return events, nil
}

// read says on stderr what its count does not cover.
func (q *hottest) read(ctx context.Context, c *rest.Connection, now time.Time, stderr io.Writer) ([]warmTarget, error) {
	events, err := q.newest(ctx, c, now, stderr)
	if err != nil {
		return nil, err
	}
	targets, patterns := q.count(events)
	if len(patterns) > 0 {
		fmt.Fprintf(stderr, "left out, as usage names their pattern only (warm them from a list): %s\n", strings.Join(patterns, ", "))
	}
	if len(targets) == 0 {
		return nil, errNothingHot
	}
	return targets, nil
}

// count returns the paths that were asked for most often and answered, the
// hottest first, and the patterns with wildcards that would have been among them.
func (q *hottest) count(events []usage.Event) (targets []warmTarget, patterns []string) {
	counts := q.asked(events)
	byHeat := func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) }
	for _, path := range slices.SortedFunc(maps.Keys(counts), byHeat) {
		switch {
		case len(targets) == q.top:
			return targets, patterns
		case strings.Contains(path, "{"):
			patterns = append(patterns, path)
		case strings.HasPrefix(path, "/"):
			targets = append(targets, warmTarget{path: path}) // escaped, as the gateway saw it
		}
	}
	return targets, patterns
}

// asked is how often each path, or pattern, was asked for and answered.
func (q *hottest) asked(events []usage.Event) map[string]int {
	counts := map[string]int{}
	for i := range events {
		if e := &events[i]; e.Method == http.MethodGet && answered(e) && (q.service == "" || e.Service == q.service) {
			counts[strings.TrimSuffix(e.Endpoint, "{$}")]++
		}
	}
	return counts
}

// answered: a path that was denied or failed is none to warm, nor one that was
// only reserved for.
func answered(e *usage.Event) bool {
	return e.Reservation == "" && e.Decision != usage.DecisionDeny && (e.StatusCode/100 == 2 || e.StatusCode == http.StatusNotModified)
}
