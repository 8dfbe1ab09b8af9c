package sales

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-platform/sluice/libs/wallet"
	"github.com/sluice-platform/sluice/libs/wallet/ledger"
	"github.com/sluice-platform/sluice/schemas/events/grants"
)

// topUp grants what is asked for, or finds what the first request with the key
// was answered, in one transaction. A *Problem as error says why neither.
func (s *Handlers) topUp(ctx context.Context, t *topUp) (*finished, error) {
	var done *finished
	transaction := func() error {
		return pgx.BeginFunc(ctx, s.Store.Pool, func(tx pgx.Tx) error {
			var err error
			done, err = s.topUpIn(ctx, tx, t)
			return err
		})
	}
	err := store.Retried(ctx, transaction)
	if wasTaken(err) { // by a twin that committed meanwhile: it is found now
		err = store.Retried(ctx, transaction)
	}
	if err != nil {
		return nil, fmt.Errorf("top up: %w", err)
	}
	return done, nil
}

// wasTaken tells the unique constraint of the keys.
func wasTaken(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == "topups_pkey"
}

func (s *Handlers) topUpIn(ctx context.Context, tx pgx.Tx, t *topUp) (*finished, error) {
	known, err := firstAnswer(ctx, tx, t)
	if known != nil || err != nil {
		return known, err
	}
	if err := t.timely(); err != nil {
		return nil, err
	}
	if err := lockCustomer(ctx, tx, t.customer); err != nil {
		return nil, err
	}
	if err := sells(ctx, tx, t.customer, t.metric); err != nil {
		return nil, err
	}
	in := WalletInput{ID: t.customer, Metric: t.metric}
	_, err = s.Store.ApplyIn(ctx, tx, store.Write{
		Entity: store.Wallets, Key: in.key(), Actor: t.actor, Cond: api.Precondition{Either: true},
		Build: func(current []byte, version int64) ([]byte, error) { return t.raise(current, version) },
	})
	if err != nil {
		return nil, err
	}
	account, err := ledger.Lock(ctx, tx, in.key())
	if err != nil {
		return nil, err
	}
	use, err := s.totals(ctx, tx, []ledger.Account{account})
	if err != nil {
		return nil, err
	}
	account.Wallet = account.At(use[0].Used())
	if account, err = ledger.Grant(ctx, tx, account, t.grant, t.note, t.actor); err != nil {
		return nil, err
	}
	return rememberAnswer(ctx, tx, t, account.Balance())
}

// timely refuses a grant that has ended already. It is not asked of repetitions:
// one that comes late is still answered as the first was, or its caller would
// take what was granted for refused and ask for it anew.
func (t *topUp) timely() error {
	if now := t.grant.GrantedAt; t.end != nil && !t.end.After(now) { // the year 1 too, which a grant would take for never
		return api.Invalid(api.InBody("expiresAt", fmt.Sprintf("must be in the future, as it is %s here; given is %s", api.Instant(now), api.Instant(*t.end))))
	}
	return nil
}

// firstAnswer returns what the key was answered before, nil if it is new. While
// another transaction works on the key it is told to wait.
func firstAnswer(ctx context.Context, tx pgx.Tx, t *topUp) (*finished, error) {
	var free bool
	err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('topup ' || $1 || ' ' || $2, 0))`, t.key, t.customer).Scan(&free)
	if err != nil {
		return nil, fmt.Errorf("lock idempotency key: %w", err)
	}
	if !free {
		p := api.NewProblem(http.StatusConflict, "in-progress", "the first request with this Idempotency-Key is still under way; repeat it")
		return nil, p.SetHeader("Retry-After", "1")
	}
	known := new(finished)
	err = tx.QueryRow(ctx, `SELECT request, answer FROM topups WHERE customer = $1 AND key = $2`, t.customer, t.key).Scan(&known.Request, &known.TopUp)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read idempotency key: %w", err)
	}
	return known, nil
}

func rememberAnswer(ctx context.Context, tx pgx.Tx, t *topUp, balance int64) (*finished, error) {
	g := t.grant
	done := &finished{Request: t.sum[:], TopUp: TopUp{
		ID: g.ID, Customer: t.customer, Metric: t.metric, Amount: g.Amount, ExpiresAt: t.end,
		Priority: g.Priority, Note: t.note, GrantedAt: g.GrantedAt, Balance: balance,
	}}
	_, err := tx.Exec(ctx, `INSERT INTO topups (customer, key, request, grant_id, answer, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		t.customer, t.key, done.Request, g.ID, done.TopUp, g.GrantedAt)
	if err != nil {
		return nil, fmt.Errorf("store idempotency key: %w", err)
	}
	return done, nil
}

// lockCustomer makes this transaction the only one that changes what the
// customer has; a Problem if there is no such customer.
func lockCustomer(ctx context.Context, tx pgx.Tx, id string) error {
	var one int
	err := tx.QueryRow(ctx, `SELECT 1 FROM customers WHERE key = $1 AND document IS NOT NULL FOR UPDATE`, id).Scan(&one)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return noCustomer()
	case err != nil:
		return fmt.Errorf("lock customer: %w", err)
	}
	return nil
}

// raise adds the amount to what was granted to a wallet.
func (t *topUp) raise(current []byte, version int64) ([]byte, error) {
	w := grants.Wallet{ID: grants.WalletID(t.customer, t.metric), TenantID: t.customer, Metric: t.metric}
	if current != nil {
		if err := json.Unmarshal(current, &w); err != nil {
			return nil, fmt.Errorf("decode stored wallet: %w", err)
		}
	}
	if t.grant.Amount > wallet.MaxTotal-w.Granted {
		return nil, api.Invalid(api.InBody("amount", fmt.Sprintf("must be at most %d: with %d granted before, no more can be counted", wallet.MaxTotal-w.Granted, w.Granted)))
	}
	w.Granted, w.Version = w.Granted+t.grant.Amount, version
	return json.Marshal(w)
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
