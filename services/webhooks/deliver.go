package webhooks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/webhook"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
)

const (
	// stopGrace is what attempts under way are given when the process stops.
	stopGrace = 3 * time.Second
	// databaseLimit ends a statement that Postgres takes and never answers.
	databaseLimit = 10 * time.Second
)

// dispatch claims and sends until ctx ends, then waits for what is under way.
func (s *Service) dispatch(ctx context.Context) {
	sending, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var work sync.WaitGroup // owned here
	defer work.Wait()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(stopGrace, cut) })()
	poll := time.NewTicker(s.cfg.PollEvery)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		case <-s.wake:
		}
		limited, cancel := context.WithTimeout(ctx, databaseLimit)
		claimed, err := s.claim(limited)
		cancel()
		if ctx.Err() != nil {
			return // what was claimed all the same is due again after its lease
		}
		s.note(err)
		for _, d := range claimed {
			work.Go(func() { s.deliver(sending, d) })
		}
	}
}

// deliver makes one attempt and marks what came of it.
func (s *Service) deliver(ctx context.Context, d delivery) {
	defer s.poke()
	defer s.leave(d.webhook)
	a := s.send(ctx, d)
	if ctx.Err() != nil && !a.Delivered() {
		return // cut off by the stop: nothing is known of the endpoint
	}
	marking, cancel := context.WithTimeout(context.WithoutCancel(ctx), databaseLimit)
	defer cancel()
	if err := s.mark(marking, d, a); err != nil {
		s.note(err) // it is due again after its lease
	}
}

// send signs and sends. The id stays the same at every attempt, and whatever
// comes of this one before it is marked.
func (s *Service) send(ctx context.Context, d delivery) webhook.Answer {
	secrets, err := s.secrets(ctx, d.webhook)
	if err != nil {
		return webhook.Answer{Err: err}
	}
	a := s.deps.Sender.Send(ctx, d.url, secrets, webhook.Message{ID: d.eventID, ContentType: quotaevents.StructuredContentType, Body: []byte(d.body)})
	s.metrics.seconds.Observe(a.Took.Seconds())
	return a
}

// mark writes what came of an attempt.
func (s *Service) mark(ctx context.Context, d delivery, a webhook.Answer) error {
	switch {
	case a.Delivered():
		return s.finish(ctx, d, a, "delivered", outcomeDelivered)
	case a.Gone():
		return s.end(ctx, d, a)
	}
	due := s.deps.Now().Add(backoff.Backoff{Min: s.cfg.MinBackoff, Max: s.cfg.MaxBackoff}.After(d.attempts))
	if due.After(d.giveUpAt) {
		s.deps.Log.Warn("delivery is given up and is a dead letter", "webhook", d.webhook, "event", d.eventID, "attempts", d.attempts, "reason", a.Reason())
		return s.finish(ctx, d, a, "dead", outcomeDead)
	}
	_, err := s.deps.Pool.Exec(ctx, `UPDATE webhook_deliveries SET due_at = $3, status = $4, reason = $5, attempted_at = $6
		WHERE id = $1 AND state = 'pending' AND attempts = $2`, d.id, d.attempts, due, status(a), a.Reason(), s.deps.Now())
	if err != nil {
		return fmt.Errorf("mark delivery for later: %w", err)
	}
	s.metrics.attempts.WithLabelValues(outcomeRetried).Inc()
	return nil
}

// finish ends a delivery. What was taken is delivered whoever claimed it since;
// a failure counts only if nobody has.
func (s *Service) finish(ctx context.Context, d delivery, a webhook.Answer, state, outcome string) error {
	_, err := s.deps.Pool.Exec(ctx, `UPDATE webhook_deliveries SET state = $3, status = $4, reason = $5, attempted_at = $6
		WHERE id = $1 AND ($3 = 'delivered' OR state = 'pending' AND attempts = $2)`, d.id, d.attempts, state, status(a), a.Reason(), s.deps.Now())
	if err != nil {
		return fmt.Errorf("mark delivery: %w", err)
	}
	s.metrics.attempts.WithLabelValues(outcome).Inc()
	return nil
}

// end closes a webhook that answered 410, in the version it had, and this
// delivery with it. What else waits for it stays, in case it is opened again.
func (s *Service) end(ctx context.Context, d delivery, a webhook.Answer) error {
	s.deps.Log.Warn("webhook answered 410 and is sent nothing more", "webhook", d.webhook, "event", d.eventID)
	err := pgx.BeginFunc(ctx, s.deps.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO webhook_gone (webhook, version, at) VALUES ($1, $2, $3)
			ON CONFLICT (webhook) DO UPDATE SET version = excluded.version, at = excluded.at WHERE webhook_gone.version < excluded.version`, d.webhook, d.version, s.deps.Now())
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE webhook_deliveries SET state = 'dead', status = $3, reason = $4, attempted_at = $5
			WHERE id = $1 AND state = 'pending' AND attempts = $2`, d.id, d.attempts, status(a), a.Reason(), s.deps.Now())
		return err
	})
	if err != nil {
		return fmt.Errorf("end webhook: %w", err)
	}
	s.metrics.attempts.WithLabelValues(outcomeGone).Inc()
	return nil
}

// status is null where there was no answer.
func status(a webhook.Answer) *int {
	if a.Status == 0 {
		return nil
	}
	return &a.Status
}
