package cache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/backoff"
)

// subscriptionState is what the listener knows of the epoch. It belongs to Run.
type subscriptionState struct {
	known    bool
	base     int64 // the epoch when the subscription began
	received int64 // invalidations since
}

// pingEvery finds a connection that is cut without a word within twice its time.
const pingEvery = time.Second

func wakeMessage(fence int64, key string) string { return fmt.Sprintf("w%016d%s", fence, key) }

// Run listens for invalidations and wake-ups until ctx ends, then cancels all loads, waits for their runs and returns
// nil. The Cache answers ErrClosed to whatever it cannot serve from memory after that.
func (c *Cache[V]) Run(ctx context.Context) error {
	defer c.end()
	if c.l2 == nil {
		<-ctx.Done()
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- c.beat.Run(ctx) }()
	defer func() { <-ended }()
	again := backoff.Backoff{Min: 50 * time.Millisecond, Max: time.Second}
	for {
		err := c.listen(ctx, &again)
		if ctx.Err() != nil {
			return nil
		}
		c.opts.Logger.Warn("cache hears no invalidations", "family", c.opts.Family, "error", err)
		if again.Wait(ctx) != nil {
			return nil
		}
	}
}

// listen is one subscription's life.
func (c *Cache[V]) listen(ctx context.Context, again *backoff.Backoff) error {
	ps := c.l2.client.Subscribe(ctx, c.l2.channel)
	defer ps.Close()
	defer c.listening.Store(false)
	// A read does not end with its context.
	defer context.AfterFunc(ctx, func() { _ = ps.Close() })()
	pinged := false
	for {
		m, err := ps.ReceiveTimeout(ctx, pingEvery)
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			if pinged {
				return fmt.Errorf("silent connection: %w", err)
			}
			if err := ps.Ping(ctx); err != nil {
				return fmt.Errorf("ping: %w", err)
			}
			pinged = true
			continue
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		}
		pinged = false
		switch m := m.(type) {
		case *redis.Subscription:
			if err := c.subscribed(ctx); err != nil {
				return err
			}
			again.Reset()
		case *redis.Message:
			c.hear(m.Payload)
		}
	}
}

// subscribed checks the epoch: if more was invalidated than heard since the last subscription, or Redis has forgotten,
// L1 is void. Everything from here on is heard.
func (c *Cache[V]) subscribed(ctx context.Context) error {
	epoch, err := c.l2.epoch(ctx)
	if err != nil {
		return fmt.Errorf("read epoch: %w", err)
	}
	h := &c.subscription
	if h.known {
		if err := c.reissue(ctx, epoch < h.base+h.received); err != nil {
			return err
		}
	}
	if !h.known || epoch != h.base+h.received {
		c.forget()
	}
	*h = subscriptionState{known: true, base: epoch}
	c.listening.Store(true)
	return nil
}

func (c *Cache[V]) hear(message string) {
	if len(message) < 17 {
		return
	}
	fence, err := strconv.ParseInt(message[1:17], 10, 64)
	if err != nil {
		return
	}
	key := message[17:]
	switch message[0] {
	case 'w':
		c.wake(key)
	case 's':
		c.subscription.received++
		c.metrics.soft.Inc()
		c.apply(key, invalidation{fence: fence, back: true})
	case 'h':
		c.subscription.received++
		c.metrics.hard.Inc()
		c.apply(key, invalidation{fence: fence, hard: true, back: true})
	}
}

func (c *Cache[V]) wake(key string) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, flights := range s.flights {
		if f := flights[key]; f != nil {
			f.signal()
		}
	}
}
