package rehearsal

import (
	"context"
	"sync"
	"time"
)

// plain is the cache that most programs begin with, shared by all nodes: what is missing is loaded, by whoever
// misses it.
type plain struct {
	run *run

	mu     sync.Mutex
	away   bool
	values []keptValue
}

type keptValue struct {
	version int64
	until   time.Time
}

func newPlain(r *run) *plain {
	return &plain{run: r, values: make([]keptValue, len(r.settings))}
}

func (u *plain) read(ctx context.Context, key int) (answer, error) {
	if kept := u.kept(key); time.Now().Before(kept.until) {
		return answer{version: kept.version}, nil
	}
	v, err := u.run.source.load(ctx, nil, key)
	if err != nil {
		return answer{}, err
	}
	u.keep(key, keptValue{version: v.version, until: time.Now().Add(u.run.settings[key].TTL)})
	return answer{version: v.version}, nil
}

func (u *plain) kept(key int) keptValue {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.away {
		return keptValue{}
	}
	return u.values[key]
}

func (u *plain) keep(key int, v keptValue) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.away {
		u.values[key] = v
	}
}

func (u *plain) clear(_ context.Context, key int) error {
	u.keep(key, keptValue{})
	return nil
}

func (u *plain) setAway(away bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.away = away
}

func (u *plain) cut()    { u.setAway(true) }
func (u *plain) mend()   { u.setAway(false) }
func (u *plain) deafen() {} // nobody listens
func (u *plain) close()  {}
