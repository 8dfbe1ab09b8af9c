package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache/keyspace"
)

// Stored is what Redis says of a value, without the value.
type Stored struct {
	Key string
	// TTL is how long it was fresh when it was stored, jitter included; the stale limits count from its end.
	TTL, StaleWhileRevalidate, StaleIfError time.Duration
	// Delta is the moving average of the key's load times.
	Delta time.Duration
	// Negative: the source has nothing under the key.
	Negative bool
	// Bytes is the size of the encoded value.
	Bytes int
}

// Scan calls see for the values of a family that Redis holds, in no order, at most so many; a key may come twice. It
// reads their heads only, a batch at a time, and changes nothing: it is for tools beside the fleet. prefix is
// Options.Prefix, with its default where it is empty.
func Scan(ctx context.Context, client redis.UniversalClient, prefix, family string, most int, see func(Stored)) error {
	if prefix == "" {
		prefix = defaultPrefix
	}
	begin := prefix + family + ":{"
	seen := 0
	err := keyspace.Each(ctx, client, begin, func(node redis.Cmdable, keys []string) error {
		found, err := heads(ctx, node, begin, keys)
		if err != nil {
			return err
		}
		for _, s := range found[:min(len(found), most-seen)] {
			see(s)
		}
		if seen += len(found); seen >= most {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("survey %s: %w", family, err)
	}
	return nil
}

var errEnough = errors.New("seen enough")

// headBytes hold an envelope's numbers: its head, flags and three varints.
const headBytes = headLen + 1 + 3*10

// heads reads those of keys that are values.
func heads(ctx context.Context, node redis.Cmdable, begin string, keys []string) ([]Stored, error) {
	var names []string
	var texts []*redis.StringCmd
	var sizes []*redis.IntCmd
	pipe := node.Pipeline()
	for _, key := range keys {
		name, ok := strings.CutSuffix(strings.TrimPrefix(key, begin), "}:v")
		if !ok {
			continue
		}
		names = append(names, tagReader.Replace(name))
		texts, sizes = append(texts, pipe.GetRange(ctx, key, 0, headBytes)), append(sizes, pipe.StrLen(ctx, key))
	}
	if len(names) == 0 {
		return nil, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("read heads: %w", err)
	}
	var found []Stored
	for i, name := range names {
		e, err := decodeEnvelope(texts[i].Val())
		if err != nil {
			continue // gone meanwhile, or of a version to come
		}
		found = append(found, Stored{
			Key: name, TTL: e.logical, StaleWhileRevalidate: e.swr, StaleIfError: e.sie, Delta: e.delta, Negative: e.negative,
			Bytes: max(0, int(sizes[i].Val())-(len(texts[i].Val())-len(e.payload))),
		})
	}
	return found, nil
}

// tagReader undoes tagEscaper.
var tagReader = strings.NewReplacer("%25", "%", "%7B", "{", "%7D", "}")
