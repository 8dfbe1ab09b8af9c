package sales

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/wallet/ledger"
)

// Wallet is a customer's prepaid units of a metric.
type Wallet struct {
	Customer  string        `json:"customer"`
	Metric    string        `json:"metric"`
	Granted   int64         `json:"granted" doc:"All that was ever granted."`
	Consumed  int64         `json:"consumed" doc:"All that was ever used."`
	Refunded  int64         `json:"refunded" doc:"What of that was given back."`
	Forfeited int64         `json:"forfeited" doc:"What grants had left at their end."`
	Balance   int64         `json:"balance" doc:"granted − consumed + refunded − forfeited; negative after an overdraft."`
	Returned  int64         `json:"returned,omitempty" doc:"Of the balance, units given back after their grant had ended; they never expire."`
	Grants    []WalletGrant `json:"grants" nullable:"false" doc:"Those that have not ended, in the order in which they are spent."`
	Source    string        `json:"source" enum:"counters,checkpoint" doc:"Whether use is the counters', or what is known of them while they cannot be read or have lost something."`
	AsOf      time.Time     `json:"asOf,omitzero" doc:"When use was that; absent where none is known."`
}

// WalletGrant is what is left of a grant.
type WalletGrant struct {
	ID        string     `json:"id"`
	Amount    int64      `json:"amount"`
	Left      int64      `json:"left"`
	Priority  int        `json:"priority"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	GrantedAt time.Time  `json:"grantedAt"`
}

// LedgerEntry is one change of what was granted or forfeited.
type LedgerEntry struct {
	ID      int64     `json:"id" doc:"Grows with every entry."`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind" enum:"topup,forfeit"`
	GrantID string    `json:"grantId" doc:"The grant that was made or has ended."`
	Amount  int64     `json:"amount" doc:"Units granted, or forfeited."`
	Balance int64     `json:"balance" doc:"The balance right after, by the use that was known then."`
	Actor   string    `json:"actor" doc:"Name of the token that was used, or keeper."`
	Note    string    `json:"note,omitempty" doc:"The grant's."`
}

// use is what is known of a wallet's counter.
type use struct {
	redisstore.Totals
	source string
	asOf   time.Time
}

// totals returns what each wallet has used. The counters say it; the keeper's
// checkpoints are a floor to that, and all there is while Redis is away.
func (s *Handlers) totals(ctx context.Context, q ledger.Querier, accounts []ledger.Account) ([]use, error) {
	counters := make([]string, len(accounts))
	for i, a := range accounts {
		counters[i] = rule.WalletCounter(a.Tenant, a.Metric)
	}
	floors, err := checkpoints(ctx, q, counters)
	if err != nil {
		return nil, err
	}
	found, asked := s.readCounters(ctx, counters), s.Store.Now().UTC()
	all := make([]use, len(accounts))
	for i := range all {
		floor := floors[counters[i]]
		all[i] = use{Totals: floor.Totals, source: fromCheckpoint, asOf: floor.asOf}
		all[i].Forfeited = max(all[i].Forfeited, accounts[i].Forfeited)
		if found == nil {
			continue
		}
		if whole := found[i].Max(all[i].Totals); whole == found[i] {
			all[i] = use{Totals: whole, source: fromCounters, asOf: asked}
		} else {
			all[i].Totals = whole
		}
	}
	return all, nil
}

// readCounters returns nil where they cannot be read.
func (s *Handlers) readCounters(ctx context.Context, counters []string) []redisstore.Totals {
	if s.Redis == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	found, err := redisstore.ReadTotals(ctx, s.Redis, s.KeyPrefix, counters)
	if err != nil {
		s.Log.WarnContext(ctx, "counters cannot be read; what was checkpointed is shown", "error", err)
		return nil
	}
	return found
}

func checkpoints(ctx context.Context, q ledger.Querier, counters []string) (map[string]use, error) {
	rows, err := q.Query(ctx, `SELECT counter, consumed, refunded, forfeited, charged_at FROM checkpoints WHERE counter = ANY($1)`, counters)
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	found := make(map[string]use, len(counters))
	var counter string
	var u use
	_, err = pgx.ForEachRow(rows, []any{&counter, &u.Consumed, &u.Refunded, &u.Forfeited, &u.asOf}, func() error {
		u.asOf = u.asOf.UTC()
		found[counter] = u
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return found, nil
}

// view shows wallets as of now; the result is never nil.
func (s *Handlers) view(ctx context.Context, accounts []ledger.Account) ([]Wallet, error) {
	used, err := s.totals(ctx, s.Store.Pool, accounts)
	if err != nil {
		return nil, err
	}
	all := make([]Wallet, len(accounts))
	for i, a := range accounts {
		u := used[i]
		now := a.At(u.Used())
		all[i] = Wallet{
			Customer: a.Tenant, Metric: a.Metric, Granted: a.Granted,
			Consumed: u.Consumed, Refunded: u.Refunded, Forfeited: u.Forfeited,
			Balance: a.Granted - u.Consumed + u.Refunded - u.Forfeited, Returned: now.Returned,
			Grants: make([]WalletGrant, len(now.Grants)), Source: u.source, AsOf: u.asOf,
		}
		for j, g := range now.Grants {
			all[i].Grants[j] = WalletGrant{
				ID: g.ID, Amount: g.Amount, Left: g.Left, Priority: g.Priority,
				ExpiresAt: timeOrNull(g.ExpiresAt), GrantedAt: g.GrantedAt,
			}
		}
	}
	return all, nil
}

func viewEntries(entries []ledger.Entry) []LedgerEntry {
	all := make([]LedgerEntry, len(entries))
	for i, e := range entries {
		all[i] = LedgerEntry{ID: e.ID, At: e.At, Kind: e.Kind, GrantID: e.GrantID, Amount: e.Amount, Balance: e.Balance, Actor: e.Actor, Note: e.Note}
	}
	return all
}
