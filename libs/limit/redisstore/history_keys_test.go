package redisstore

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/limit"
)

// expiryScript returns the keys of a pattern, sorted, each with its end in ms,
// -1 without one. Those whose end has passed by ARGV[2] it deletes.
const expiryScript = `
local keys = redis.call('KEYS', ARGV[1])
table.sort(keys)
local out = {}
for i, key in ipairs(keys) do
  local ends = redis.call('PEXPIRETIME', key)
  if ends >= 0 and ends <= tonumber(ARGV[2]) then redis.call('DEL', key) end
  out[2 * i - 1], out[2 * i] = key, ends
end
return out`

// held is a key and when it expires, 0 for never.
type held struct {
	key string
	end time.Duration
}

// keys returns the run's keys as they were before those of which end has passed
// by then were deleted.
func (h *history) keys(t *rapid.T, then time.Time) []held {
	answer, err := redis.NewScript(expiryScript).Run(context.Background(), h.client, nil,
		h.store.o.KeyPrefix+h.run+"*", then.UnixMilli()).Slice()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]held, len(answer)/2)
	for i := range all {
		end := answer[2*i+1].(int64)
		all[i] = held{answer[2*i].(string), time.Duration(max(0, end)) * time.Millisecond}
	}
	return all
}

// expire deletes keys whose end has passed by the test's clock, as Redis would.
func (h *history) expire(t *rapid.T) {
	for _, k := range h.keys(t, h.now) {
		if wallet := strings.Contains(k.key, "PREPAID") || strings.Contains(k.key, "prepaid"); wallet != (k.end == 0) && !h.stripped[k.key] {
			t.Fatalf("%s expires at %s", k.key, k.end)
		}
		if k.end > 0 && k.end <= time.Duration(h.now.UnixMilli())*time.Millisecond {
			h.loses(k, "everything")
		}
	}
	h.floor = h.now
}

// loses notes what a key lost.
func (h *history) loses(k held, what string) {
	counter := limit.Counter{Key: strings.TrimPrefix(k.key, h.store.o.KeyPrefix)}
	h.lived = append(h.lived, moment{h.now, []limit.Counter{counter}, " loses " + what})
}

// strip takes the expiry from some keys.
func (h *history) strip(t *rapid.T) {
	d := newDice(h.salt, rapid.Uint64().Draw(t, "strip"))
	pipe := h.client.Pipeline()
	for _, k := range h.keys(t, time.Time{}) {
		if k.end > 0 && d.oneIn(4) {
			h.stripped[k.key] = true
			h.loses(k, "its expiry")
			pipe.Persist(context.Background(), k.key)
		}
	}
	if _, err := pipe.Exec(context.Background()); err != nil {
		t.Fatal(err)
	}
}
