package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/wallet"
	"github.com/sluice-platform/sluice/libs/wallet/ledger"
)

const (
	// forfeitEvery is how often grants that have expired are looked for.
	forfeitEvery = time.Second
	// walletsAtOnce bounds one look; more are due when the keeper was away.
	walletsAtOnce = 100
	// forfeitPatience bounds the end of one grant, while its wallet's row is
	// held: top-ups of the wallet wait for it.
	forfeitPatience = 5 * time.Second
	// keeperActor is the keeper's name in the ledger.
	keeperActor = "keeper"
)

// forfeiter ends grants that have expired: what one has left is charged to the
// wallet's forfeited total in Redis, in one step with reading the use that it
// follows from, and then written into the ledger with the checkpoint that a
// restore would raise Redis to.
//
// A wallet's grants end one by one under the wallet's row, and the ledger knows
// what all that have ended forfeited. So what Redis has beyond that is of the
// one under way, charged by a keeper that died before its commit: it is taken
// from there, not charged again. A Redis that lost the charge as well has less
// than is known, or just what is known, and the grant is judged anew.
type forfeiter struct {
	deps    Deps
	metrics *forfeitMetrics
}

// forfeitMetrics name no tenant: the ledger does.
type forfeitMetrics struct{ ended, units, failures prometheus.Counter }

func newForfeitMetrics(reg prometheus.Registerer) *forfeitMetrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	return &forfeitMetrics{
		ended:    counter("sluice_keeper_grants_ended_total", "Grants of wallets that expired, and were ended with their row in the ledger."),
		units:    counter("sluice_keeper_forfeited_units_total", "Units that those had left."),
		failures: counter("sluice_keeper_forfeit_failures_total", "Looks for expired grants after which some were left, tried again."),
	}
}

func newForfeiter(deps Deps) *forfeiter {
	return &forfeiter{deps: deps, metrics: newForfeitMetrics(deps.Registerer)}
}

// run looks until ctx ends. Redis or Postgres away is waited for.
func (f *forfeiter) run(ctx context.Context) {
	pause := backoff.Backoff{Min: forfeitEvery, Max: 30 * time.Second}
	ticker := time.NewTicker(forfeitEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := f.look(ctx); err != nil && ctx.Err() == nil {
			f.metrics.failures.Inc()
			f.deps.Log.Warn("expired grants could not all be ended; tried again", "cause", err)
			if pause.Wait(ctx) != nil {
				return
			}
		} else {
			pause.Reset()
		}
	}
}

// look ends the grants that are due. One wallet's trouble is not another's.
func (f *forfeiter) look(ctx context.Context) error {
	keys, err := ledger.Due(ctx, f.deps.Pool, f.deps.Now(), walletsAtOnce)
	if err != nil {
		return err
	}
	var errs []error
	for _, key := range keys {
		for more := true; more && err == nil && ctx.Err() == nil; {
			more, err = f.endNext(ctx, key)
		}
		if !errors.Is(err, redisstore.ErrEarly) { // our clock is ahead of Redis's, which decides
			errs = append(errs, err)
		}
		err = nil
	}
	return errors.Join(errs...)
}

// endNext ends the wallet's grant that expired first; more is false when none
// was due. Killed at any instant it has ended it whole, or the next call does.
func (f *forfeiter) endNext(ctx context.Context, key string) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, forfeitPatience)
	defer cancel()
	var forfeited int64
	err = pgx.BeginFunc(ctx, f.deps.Pool, func(tx pgx.Tx) error {
		account, err := ledger.Lock(ctx, tx, key)
		if err != nil {
			return err
		}
		grant, due := account.Due(f.deps.Now())
		if more = due; !due {
			return nil // another keeper was faster
		}
		out, err := f.charge(ctx, tx, account, grant)
		if err != nil {
			return err
		}
		account.Wallet = account.At(out.Totals.Used())
		if account, err = ledger.End(ctx, tx, account, grant.ID, out.Units, out.Now, keeperActor); err != nil {
			return err
		}
		forfeited = out.Units
		return checkpointWallet(ctx, tx, account, out)
	})
	if err != nil {
		return false, fmt.Errorf("end a grant of wallet %s: %w", key, err)
	}
	if more {
		f.metrics.ended.Inc()
		f.metrics.units.Add(float64(forfeited))
	}
	return more, nil
}

// charge has Redis forfeit what the grant has left there.
func (f *forfeiter) charge(ctx context.Context, tx pgx.Tx, a ledger.Account, g wallet.Grant) (redisstore.Outcome, error) {
	counter := rule.WalletCounter(a.Tenant, a.Metric)
	known := redisstore.Totals{Forfeited: a.Forfeited}
	err := tx.QueryRow(ctx, `SELECT consumed, refunded FROM checkpoints WHERE counter = $1`, counter).Scan(&known.Consumed, &known.Refunded)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return redisstore.Outcome{}, fmt.Errorf("read checkpoint: %w", err)
	}
	now, err := f.deps.Redis.Time(ctx).Result()
	if err != nil {
		return redisstore.Outcome{}, fmt.Errorf("ask redis for the time: %w", err)
	}
	claim, _ := a.Claim(g.ID) // the wallet holds it: it is due
	return redisstore.Forfeit(ctx, f.deps.Redis, f.deps.KeyPrefix, redisstore.Forfeiture{
		Counter: counter, ExpiresAt: g.ExpiresAt, Deadline: now.Add(forfeitPatience), Known: known, Claim: claim,
	})
}

// checkpointWallet makes what was forfeited a floor that a restore raises Redis to.
func checkpointWallet(ctx context.Context, tx pgx.Tx, a ledger.Account, out redisstore.Outcome) error {
	counter := rule.WalletCounter(a.Tenant, a.Metric)
	_, err := tx.Exec(ctx, raiseWalletSQL, counter, a.Tenant, a.Metric, out.Totals.Consumed, out.Totals.Refunded, out.Totals.Forfeited, a.Granted, out.Now)
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return nil
}

const raiseWalletSQL = `INSERT INTO checkpoints AS c (counter, tenant, metric, period, consumed, refunded, forfeited, "limit", charged_at, updated_at)
VALUES ($1, $2, $3, '', $4, $5, $6, $7, $8, $8)
ON CONFLICT (counter) DO UPDATE SET consumed = GREATEST(c.consumed, excluded.consumed), refunded = GREATEST(c.refunded, excluded.refunded),
    forfeited = GREATEST(c.forfeited, excluded.forfeited), updated_at = excluded.updated_at`
