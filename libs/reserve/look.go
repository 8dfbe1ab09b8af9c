package reserve

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	schema "github.com/sluice-platform/sluice/schemas/redis"
)

var lookScript = redis.NewScript(schema.Reservation)

// standing is what the store has of a reservation.
type standing struct {
	now     int64 // µs, by the clock of the tenant's counters
	number  int64
	attempt int64 // the one charged, 0 for none
	ended   int64 // µs
	record  *Record
	records int64 // of all attempts, notes among them
	told    bool
	open    int64 // of the tenant
}

// look reads how a reservation stands, with the record of an attempt, of 0 that
// of the one charged.
func (b *Book) look(ctx context.Context, n name, attempt int64) (standing, error) {
	asked := ""
	if attempt != 0 {
		asked = field(attempt)
	}
	return standingOf(n, lookScript.Run(ctx, b.o.Client, b.lookKeys(n), asked))
}

// lookKeys are the keys that the script reads.
func (b *Book) lookKeys(n name) []string {
	p := b.o.KeyPrefix
	return []string{p + n.state(), p + n.attempt(), p + n.end(), p + n.records(), redisstore.EpochKey(b.o.Client, p, n.state()), p + n.places()}
}

// standingOf reads the script's answer.
func standingOf(n name, cmd *redis.Cmd) (standing, error) {
	answer, err := cmd.StringSlice()
	if err != nil {
		return standing{}, fmt.Errorf("look at reservation %s: %w", n.id, unavailable(err))
	}
	if len(answer) != 9 {
		return standing{}, fmt.Errorf("look at reservation %s: answer %q is not the script's", n.id, answer)
	}
	if answer[0] != "1" {
		return standing{}, fmt.Errorf("look at reservation %s: %w: %w", n.id, limit.ErrUnavailable, limit.ErrRestoring)
	}
	st := standing{told: answer[7] != ""}
	for i, to := range map[int]*int64{1: &st.now, 2: &st.number, 3: &st.attempt, 4: &st.ended, 6: &st.records, 8: &st.open} {
		if *to, err = strconv.ParseInt(answer[i], 10, 64); err != nil || *to < 0 {
			return standing{}, fmt.Errorf("look at reservation %s: %q is no number: %w", n.id, answer[i], limit.ErrCounterBroken)
		}
	}
	if answer[5] != "" {
		st.record, err = decodeRecord([]byte(answer[5]))
	}
	return st, err
}

// unavailable marks what go-redis says of a store that is away.
func unavailable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return fmt.Errorf("%w: %w", limit.ErrCounterBroken, err)
	}
	return fmt.Errorf("%w: %w", limit.ErrUnavailable, err)
}

// reservation is the one that stands there; false where nothing was charged.
func (s *standing) reservation(n name) (Reservation, bool) {
	r := Reservation{Record: s.record}
	r.State, r.Committed = stateOf(s.number)
	if s.ended != 0 {
		r.EndedAt = time.UnixMicro(s.ended).UTC()
	}
	if r.Record == nil {
		r.Record = &Record{ID: n.id, Tenant: n.tenant}
	}
	return r, r.State != None
}

// Get returns a caller's reservation as it stands, or ErrUnknown.
func (b *Book) Get(ctx context.Context, who Caller, id string) (Reservation, error) {
	n := name{who.Tenant, id}
	st, err := b.look(ctx, n, 0)
	if err != nil {
		return Reservation{}, err
	}
	r, ok := st.callers(n, who)
	if !ok {
		return Reservation{}, ErrUnknown
	}
	return r, nil
}
