package reserve

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore"
)

// Kept is what is known of a reservation outside of the store.
type Kept struct {
	Tenant, ID string
	// Attempt is the one that was charged, Number how far it has come, EndedAt when
	// it ended, 0 for not: as the store has them, times in µs since the epoch.
	Attempt, Number, EndedAt int64
	// Record is empty where it is not known: the reservation can then not be ended,
	// only known to be.
	Record []byte
	// Uncharged are the places of shadow rules that were not charged.
	Uncharged []int
}

// Restore brings back what a store has lost of reservations: numbers only grow
// until they end, so that it may be called any number of times, by anybody. What is
// due is swept, and taken out of the index once more. Those long ended are left
// out.
func Restore(ctx context.Context, client redis.UniversalClient, keyPrefix string, now time.Time, all []Kept) error {
	var numbers []restore.Number
	var records []*Record
	for i := range all {
		k := &all[i]
		n := name{k.Tenant, k.ID}
		expires := now.Add(keepOpen)
		if k.EndedAt != 0 {
			expires = time.UnixMicro(k.EndedAt).Add(keepEnded)
		}
		if !expires.After(now) {
			continue
		}
		numbers = append(numbers,
			restore.Number{Key: n.state(), N: k.Number, Expires: expires},
			restore.Number{Key: n.attempt(), N: k.Attempt, Expires: expires})
		if k.EndedAt != 0 {
			numbers = append(numbers, restore.Number{Key: n.end(), N: k.EndedAt, Expires: expires})
		}
		r, err := decodeRecord(k.Record)
		if len(k.Record) == 0 || err != nil || r.Tenant != k.Tenant || r.ID != k.ID || r.At != k.Attempt {
			continue
		}
		records = append(records, r)
		numbers = append(numbers, k.followers(client, r, expires)...)
	}
	if err := restore.RaiseNumbers(ctx, client, keyPrefix, numbers); err != nil {
		return fmt.Errorf("restore reservations: %w", err)
	}
	return restoreRecords(ctx, client, keyPrefix, records)
}

// followers are the numbers of what follows the tenant's slot: an end is told
// after they have followed.
func (k *Kept) followers(client redis.UniversalClient, r *Record, expires time.Time) (all []restore.Number) {
	number := int64(followerCharged)
	if State(k.Number) > Reserved {
		number = followerEnded
	}
	_, followers := split(client, r)
	for i := range followers {
		if f := &followers[i]; !f.shadow || !slices.Contains(k.Uncharged, f.places[0]) {
			all = append(all, restore.Number{Key: f.key, N: number, Expires: expires})
		}
	}
	return all
}

// recordsACall are written in one go.
const recordsACall = 128

func restoreRecords(ctx context.Context, client redis.UniversalClient, keyPrefix string, records []*Record) error {
	for part := range slices.Chunk(records, recordsACall) {
		pipe := client.Pipeline()
		for _, r := range part {
			e := entry{name{r.Tenant, r.ID}, r.At}
			pipe.HSetNX(ctx, keyPrefix+e.records(), field(e.attempt), r.encode())
			pipe.ExpireAt(ctx, keyPrefix+e.records(), r.ExpiresAt().Add(keepOpen))
			pipe.ZAddNX(ctx, keyPrefix+e.shard(), redis.Z{Score: float64(r.Until), Member: e.String()})
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("restore records of reservations: %w", unavailable(err))
		}
		if err := restorePlaces(ctx, client, keyPrefix, part); err != nil {
			return err
		}
	}
	return nil
}

// remembered is how many records a book remembers: those are forgotten that were
// made longest ago, and matter only if no event of them has reached Kafka.
const remembered = 8192

// memory has the records of attempts that were made here.
type memory struct {
	mu      sync.Mutex
	records map[entry]*Record
	order   []entry // a ring
	next    int
}

func (m *memory) remember(e entry, r *Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		m.records = map[entry]*Record{}
	}
	if len(m.order) < remembered {
		m.order = append(m.order, e)
	} else {
		delete(m.records, m.order[m.next])
		m.order[m.next] = e
		m.next = (m.next + 1) % remembered
	}
	m.records[e] = r
}

func (m *memory) forget(e entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, e)
}

// HandIn brings back the records of reservations that this book made, to a store
// that may have lost them; their numbers are the store's own to hand in. It is for
// redisstore.Options.
func (b *Book) HandIn(ctx context.Context) error {
	b.memory.mu.Lock()
	all := make([]*Record, 0, len(b.memory.records))
	for _, r := range b.memory.records {
		all = append(all, r)
	}
	b.memory.mu.Unlock()
	return restoreRecords(ctx, b.o.Client, b.o.KeyPrefix, all)
}
