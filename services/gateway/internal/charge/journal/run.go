package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/spool"
)

// Open opens or begins the journal in its folder. Close it after Run returned.
func Open(o Options) (*Journal, error) {
	if o.SizeBytes <= 0 {
		o.SizeBytes = DefaultSizeBytes
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Boot == nil {
		o.Boot = boot
	}
	// One shard: the records' numbers are the stretch's.
	sp, err := spool.Open(spool.Options{Dir: o.Dir, SizeBytes: o.SizeBytes, Shards: 1, Log: o.Log, Now: o.Now})
	if err != nil {
		return nil, fmt.Errorf("journal of what is owed: %w", err)
	}
	j := &Journal{o: o, spool: sp, sync: sp.Sync, open: map[uint64]struct{}{}}
	if j.state, err = loadState(o.Dir, o.Log); err != nil {
		return nil, errors.Join(err, sp.Close())
	}
	if err := j.begin(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// begin takes over what the processes before have left.
func (j *Journal) begin() (err error) {
	if j.spool.NextSeq() < j.state.done {
		// The records' numbers began anew: the journal's file was replaced.
		j.state.renew()
	}
	j.unanswered = j.state.intent > j.state.done
	sameBoot, err := j.state.start(hashOf(j.o.Boot()))
	if err != nil {
		return err
	}
	if j.metrics, err = newMetrics(j.o.Registerer, j.spool.Stats, j.Pending); err != nil {
		return fmt.Errorf("journal metrics: %w", err)
	}
	j.giveBackOrphans(sameBoot)
	j.done.Store(j.state.done)
	if j.spool.Stats().Pending == 0 {
		j.done.Store(j.spool.NextSeq())
	}
	return nil
}

// boot names the machine since it started, by Linux; empty elsewhere.
func boot() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(b)
}

// Run settles what the journal holds until ctx is cancelled; then it returns nil.
// The store away is waited for.
func (j *Journal) Run(ctx context.Context) error {
	pause := backoff.Backoff{Max: time.Second}
	for j.spool.Wait(ctx) == nil {
		charged, err := j.stretch(ctx)
		switch {
		case err == nil:
			pause.Reset()
			if !charged && wait(ctx, gatherFor) != nil {
				return nil
			}
			continue
		case ctx.Err() != nil:
			return nil
		}
		j.o.Log.Log(ctx, logLevel(errors.Is(err, limit.ErrUnavailable)), "what is owed is not settled yet; trying again", "pending", j.Pending(), "cause", err)
		if pause.Wait(ctx) != nil {
			return nil
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stretch settles the next stretch, or the one that was begun before; it reports
// whether there was anything to charge or give back.
func (j *Journal) stretch(ctx context.Context) (charged bool, err error) {
	records, mark := j.next()
	if len(records) == 0 {
		return false, nil
	}
	end := records[len(records)-1].Seq + 1
	sums := newSums(j.o.Now(), j.o.Store.Clock(), j.o.Log)
	for _, r := range records {
		if r.Seq >= j.state.done {
			sums.add(r.Value)
		}
	}
	counters := sums.counters()
	charged = len(counters) > 0
	if charged {
		if err = j.charge(ctx, end, counters); err != nil {
			j.rewind()
			return charged, err
		}
	}
	j.hold(records)
	j.advance(mark)
	if charged {
		j.state.done = end
		err = j.state.save()
		j.metrics.settled.Add(float64(sums.requests))
	}
	j.done.Store(max(end, j.done.Load()))
	return charged, err
}

// next reads a stretch. One that was begun, and perhaps charged, ends where it did
// then.
func (j *Journal) next() ([]spool.Record, spool.Mark) {
	n := stretchRecords
	if j.state.intent > j.state.done {
		j.rewind()
		if first, _ := j.spool.Next(1); len(first) > 0 && first[0].Seq < j.state.intent {
			n = int(j.state.intent - first[0].Seq) //nolint:gosec // records of one ring
		}
		j.rewind()
	}
	return j.spool.Next(n)
}

// rewind has the records read again from the mark.
func (j *Journal) rewind() {
	j.spool.Rewind()
	j.held = nil
}
