package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/httpcache"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/tools/rehearsal"
)

// surveyed bounds how many stored answers are looked at.
const surveyed = 100_000

// storedURL is a stored answer and the URL it is of.
type storedURL struct {
	host, path, query string
	cache.Stored
}

// keys are the route's hottest, each with what is known of it.
func (f *rehearseFlags) keys(ctx context.Context, c *rest.Connection, s *stand, r *cachedRoute, cmd *cobra.Command) ([]rehearsal.Key, error) {
	weights, err := f.weights(ctx, c, r, cmd)
	if err != nil {
		return nil, err
	}
	stored, err := s.survey(ctx, r.service.Name)
	if err != nil {
		return nil, err
	}
	k := keyMaker{flags: f, route: r, stored: stored, found: map[string]*rehearsal.Key{}}
	for _, target := range slices.SortedFunc(maps.Keys(weights), func(a, b warmTarget) int { return strings.Compare(a.String(), b.String()) }) {
		k.add(target, float64(weights[target]))
	}
	keys, err := k.finish(cmd.ErrOrStderr())
	r.judge(keys, s.real != nil, k.kept)
	return keys, err
}

// weights are how often each path of the route, or pattern, is asked for.
func (f *rehearseFlags) weights(ctx context.Context, c *rest.Connection, r *cachedRoute, cmd *cobra.Command) (map[warmTarget]int, error) {
	if f.paths != "" {
		_, weights, err := countTargets(f.paths, cmd.InOrStdin())
		return weights, err
	}
	f.hottest.service = r.service.Name
	events, err := f.hottest.newest(ctx, c, time.Now(), cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	weights := map[warmTarget]int{}
	for path, n := range f.hottest.asked(events) {
		if strings.HasPrefix(path, "/") {
			weights[warmTarget{path: path}] = n
		}
	}
	if len(weights) == 0 {
		return nil, fmt.Errorf("no usage event of that time names a path of %s: give more time (--since), or a list (--paths)", r.service.Name)
	}
	return weights, nil
}

// survey reads what the deployment's cache says of the service's answers.
func (s *stand) survey(ctx context.Context, service string) ([]storedURL, error) {
	if s.real == nil {
		return nil, nil
	}
	o := *s.real
	cache.ConfigureRedis(&o, time.Second) // a survey may take its time
	client := redis.NewUniversalClient(&o)
	defer client.Close()
	var all []storedURL
	err := cache.Scan(ctx, client, s.prefix, httpcache.FamilyName(service), surveyed, func(v cache.Stored) {
		host, path, query, ok := httpcache.ParseKey(v.Key)
		if ok {
			all = append(all, storedURL{host, path, query, v})
		}
	})
	return all, err
}

// keyMaker makes keys of targets.
type keyMaker struct {
	flags  *rehearseFlags
	route  *cachedRoute
	stored []storedURL
	found  map[string]*rehearsal.Key
	// What is left out, for the operator to know.
	others, validated, unknown int
	// kept is how many stored answers of the route were found.
	kept int
}

// add takes one path, or what is stored under one pattern.
func (k *keyMaker) add(target warmTarget, weight float64) {
	path, query, _ := strings.Cut(target.path, "?")
	if clean, err := route.CleanPath(path); err == nil && !strings.Contains(path, "{") {
		path = clean
	}
	matches := func(s *storedURL) bool { return s.path == path }
	if strings.Contains(path, "{") {
		pattern, err := route.Parse(http.MethodGet + " " + path)
		if err != nil {
			k.unknown++
			return
		}
		matches = func(s *storedURL) bool { return pattern.Matches(http.MethodGet, s.path) }
	}
	var of []*storedURL
	for i := range k.stored {
		s := &k.stored[i]
		if matches(s) && (target.host == "" || strings.EqualFold(target.host, s.host)) && (query == "" || query == s.query) {
			of = append(of, s)
		}
	}
	switch {
	case len(of) > 0:
		for _, s := range of {
			k.addStored(s, weight/float64(len(of)))
		}
	case strings.Contains(path, "{"):
		k.unknown++ // nothing says which URLs it stands for
	case !k.route.covers(path):
		k.others++
	default:
		k.put(target.String(), weight, rehearsal.Key{Settings: k.route.settings()})
	}
}

func (k *keyMaker) addStored(s *storedURL, weight float64) {
	switch {
	case !k.route.covers(s.path):
		k.others++
		return
	case s.TTL < time.Millisecond: // each request asks the service
		k.validated++
		k.kept++
		return
	}
	k.kept++
	name := s.host + s.path
	if s.query != "" {
		name += "?" + s.query
	}
	k.put(name, weight, rehearsal.Key{Latency: s.Delta, Bytes: s.Bytes, Settings: rehearsal.Settings{
		TTL: s.TTL, StaleWhileRevalidate: s.StaleWhileRevalidate, StaleIfError: s.StaleIfError,
	}})
}

// put adds a key; variants of one URL are one key, as long as the slowest of them.
func (k *keyMaker) put(name string, weight float64, key rehearsal.Key) {
	old := k.found[name]
	if old == nil {
		key.Name, key.Weight = name, weight
		k.found[name] = &key
		return
	}
	old.Weight += weight
	old.Latency, old.Bytes = max(old.Latency, key.Latency), max(old.Bytes, key.Bytes)
}

var (
	errNothingToRehearse = errors.New("no path of that route is known: see what was left out")
	errNoLatency         = errors.New("no stored answer tells how long a load takes: give --source-latency")
)

// finish fills in what was not measured, and takes the hottest.
func (k *keyMaker) finish(stderr io.Writer) ([]rehearsal.Key, error) {
	for _, left := range []struct {
		n   int
		why string
	}{
		{k.others, "are of other routes"}, {k.validated, "are validated at each request"}, {k.unknown, "are patterns of which nothing is stored"},
	} {
		if left.n > 0 {
			fmt.Fprintf(stderr, "left out: %d that %s\n", left.n, left.why)
		}
	}
	if len(k.found) == 0 {
		return nil, errNothingToRehearse
	}
	keys := make([]rehearsal.Key, 0, len(k.found))
	for _, key := range k.found {
		keys = append(keys, *key)
	}
	slices.SortFunc(keys, func(a, b rehearsal.Key) int {
		return cmp.Or(-cmp.Compare(a.Weight, b.Weight), strings.Compare(a.Name, b.Name))
	})
	keys = keys[:min(len(keys), k.flags.hottest.top)]
	usual := k.usualLatency(keys)
	for i := range keys {
		if keys[i].Latency == 0 || k.flags.latency > 0 {
			keys[i].Latency = usual
		}
		if usual == 0 && keys[i].Latency == 0 {
			return nil, errNoLatency
		}
	}
	return keys, nil
}

// usualLatency is the flag's, else the median of what was measured.
func (k *keyMaker) usualLatency(keys []rehearsal.Key) time.Duration {
	if k.flags.latency > 0 {
		return k.flags.latency
	}
	var known []time.Duration
	for i := range keys {
		if keys[i].Latency > 0 {
			known = append(known, keys[i].Latency)
		}
	}
	if len(known) == 0 {
		return 0
	}
	slices.Sort(known)
	return known[len(known)/2]
}
