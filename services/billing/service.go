package billing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// customerLimit ends the work on one customer that Postgres takes and never
	// answers.
	customerLimit = 30 * time.Second
	customersPage = 500
)

// Service works out invoices. Make it with New; Run once. Any number may run.
type Service struct {
	cfg     Config
	deps    Deps
	metrics *metrics

	mu      sync.Mutex
	failing error // why the last pass ended early; nil when it did not
}

// New prepares the job and starts nothing.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if err := deps.complete(); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, deps: deps, metrics: newMetrics(deps.Registerer)}, nil
}

// Run passes over all customers, at once and then every Config.Every, until ctx
// ends; then it returns nil. It does not end because Postgres is away.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(s.cfg.Every)
	defer tick.Stop()
	for {
		err := s.Pass(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			s.deps.Log.Warn("invoices could not be worked out; the next pass tries again", "error", err)
		}
		s.mu.Lock()
		s.failing = err
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Ready is nil unless the last pass failed as a whole.
func (s *Service) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing
}

// Pass works out every customer's invoices, as of now. A customer that fails is
// logged and counted; the error is of what stops all, such as Postgres away.
func (s *Service) Pass(ctx context.Context) error {
	timer := prometheus.NewTimer(s.metrics.seconds)
	defer timer.ObserveDuration()
	for after := ""; ; {
		customers, err := s.customers(ctx, after)
		if err != nil {
			return err
		}
		for _, id := range customers {
			if err := s.customer(ctx, id); err != nil {
				if ctx.Err() != nil {
					return err
				}
				s.metrics.failures.Inc()
				s.deps.Log.Error("a customer's invoices could not be worked out", "customer", id, "error", err)
			}
			after = id
		}
		if len(customers) < customersPage {
			s.metrics.last.Set(float64(s.deps.Now().UnixMilli()) / 1000)
			return nil
		}
	}
}

func (s *Service) customers(ctx context.Context, after string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, customerLimit)
	defer cancel()
	rows, err := s.deps.Pool.Query(ctx, `SELECT DISTINCT customer FROM subscriptions
WHERE customer > $1 ORDER BY customer LIMIT $2`, after, customersPage)
	if err != nil {
		return nil, fmt.Errorf("list customers: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list customers: %w", err)
	}
	return ids, nil
}

// customer works out one customer's invoices in one transaction.
func (s *Service) customer(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, customerLimit)
	defer cancel()
	var wrote written
	err := pgx.BeginFunc(ctx, s.deps.Pool, func(tx pgx.Tx) error {
		wrote = written{}
		a, err := readAccount(ctx, tx, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // no longer there: what is final stays
		}
		if err != nil {
			return err
		}
		return s.bill(ctx, tx, a, &wrote)
	})
	if err != nil {
		return err
	}
	s.metrics.invoices.WithLabelValues(wroteDraft).Add(float64(wrote.drafts))
	s.metrics.invoices.WithLabelValues(wroteFinal).Add(float64(wrote.final))
	s.metrics.corrections.Add(float64(wrote.corrections))
	return nil
}

// written counts what a transaction wrote, for the metrics.
type written struct{ drafts, final, corrections int }
