package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// peers are the gateways that this one has seen at a process, itself as well. A
// Redis that is emptied forgets them; who asks what became of a lost call must
// know of everybody that may have charged beside it.
type peers struct {
	began int64            // when this process looked first, µs of Redis's clock
	since int64            // from when on all were seen that came by, as began
	last  map[string]int64 // when each was there last, µs of Redis's clock
}

// peersKept is how long one that left is remembered.
const peersKept = time.Hour

// see takes what Redis has of them at its time.
func (p *peers) see(seen map[string]int64, now int64) {
	if p.last == nil {
		p.began, p.since, p.last = now, now, map[string]int64{}
	}
	for name, at := range seen {
		p.last[name] = max(p.last[name], at)
	}
	for name, at := range p.last {
		if now-at > peersKept.Microseconds() {
			delete(p.last, name)
			p.since = max(p.since, at)
		}
	}
}

// presence is the answer of attend.lua.
type presence struct {
	standing
	now  int64            // µs of Redis's clock
	seen map[string]int64 // by gateway: when it said so last, µs
}

func presenceOf(cmd *redis.Cmd) (presence, error) {
	answer, err := cmd.StringSlice()
	if err != nil {
		return presence{}, err
	}
	if len(answer) < 3 || len(answer)%2 == 0 {
		return presence{}, fmt.Errorf("attend: %d answers", len(answer))
	}
	p := presence{standing: standing{answer[0], answer[1]}, seen: map[string]int64{}}
	if p.now, err = strconv.ParseInt(answer[2], 10, 64); err != nil {
		return presence{}, fmt.Errorf("attend: time: %w", err)
	}
	for i := 3; i < len(answer); i += 2 {
		seconds, _, _ := strings.Cut(answer[i+1], " ")
		if n, err := strconv.ParseInt(seconds, 10, 64); err == nil {
			p.seen[answer[i]] = n * time.Second.Microseconds()
		}
	}
	return p, nil
}
