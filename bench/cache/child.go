package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// childEnv makes this program one process of a fleet: its value is a node in JSON.
const childEnv = "SLUICE_BENCH_CACHE_NODE"

// node is one process. It opens its contender and says ready; reads once and says warmed for a line on its standard
// input; at that input's end it reads as its scenario wants, says how it went, and ends.
type node struct {
	traffic
	Contender, Scenario string
	Redis               string
	// Proxy is the address to read through; empty without one.
	Proxy string
	// Gateway makes this process a gateway instead.
	Gateway *gatewayNode
}

// What a node says, a line each; then its tally in JSON.
const (
	sayReady  = "ready"
	sayWarmed = "warmed"
	sayBegin  = "+" // a load begins
	sayEnd    = "-" // a load has ended
)

// say writes whole lines: loads begin and end in many goroutines.
var say = func() func(string) {
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(os.Stdout, line+"\n") // a parent that is gone has ended us too
	}
}()

func child(ctx context.Context, spec []byte) error {
	var n node
	if err := json.Unmarshal(spec, &n); err != nil {
		return fmt.Errorf("read %s: %w", childEnv, err)
	}
	if n.Gateway != nil {
		return n.Gateway.run(ctx)
	}
	read, err := n.reader(ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", n.Contender, err)
	}
	say(sayReady)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); say(sayWarmed) {
		if _, err := read(ctx); err != nil {
			return fmt.Errorf("warm %s: %w", n.Contender, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, n.For+readPatience)
	defer cancel()
	var t tally
	if n.Scenario == cold {
		n.readOnce(ctx, read, &t)
	} else {
		n.readOn(ctx, read, &t)
	}
	result, err := json.Marshal(&t)
	if err != nil {
		return err
	}
	say(string(result))
	return nil
}

// readPatience is what a read may take before it is an error.
const readPatience = 30 * time.Second

func (n node) reader(ctx context.Context) (reader, error) {
	if n.Proxy != "" {
		return httpReader(n)
	}
	for _, c := range contenders {
		if c.name == n.Contender {
			return c.open(ctx, n, n.load)
		}
	}
	return nil, fmt.Errorf("no contender %q", n.Contender)
}

var loads atomic.Int64

// load is one load of the source, by this process.
func (n node) load(ctx context.Context) (string, error) {
	say(sayBegin)
	defer say(sayEnd)
	if err := work(ctx, n.Load); err != nil {
		return "", err
	}
	return value(loads.Add(1), time.Now()), nil
}

// one is a read that was due.
func (n node) one(ctx context.Context, read reader, due time.Time, t *tally) {
	asked := time.Now()
	v, err := read(ctx)
	t.count(time.Since(due), err == nil && stale(v, asked, n.TTL), err)
}

// readOnce is the cold key: all readers at one instant.
func (n node) readOnce(ctx context.Context, read reader, t *tally) {
	var wait sync.WaitGroup
	due := time.Now()
	for range n.Readers {
		wait.Go(func() { n.one(ctx, read, due, t) })
	}
	wait.Wait()
}

// tick is how often reads fall due, several at once: a timer a read would cost more than the read.
const tick = time.Millisecond

// readOn is the hot key: reads at the node's rate, whether earlier ones have returned or not.
func (n node) readOn(ctx context.Context, read reader, t *tally) {
	rate := n.Rate
	if n.Proxy != "" {
		rate = n.HTTPRate
	}
	perTick := float64(rate) / float64(n.Nodes) * tick.Seconds()
	var wait sync.WaitGroup
	begin, owed := time.Now(), 0.0
	for due := begin; due.Sub(begin) < n.For && ctx.Err() == nil; due = due.Add(tick) {
		<-time.After(time.Until(due))
		for owed += perTick; owed >= 1; owed-- {
			wait.Go(func() { n.one(ctx, read, due, t) })
		}
	}
	wait.Wait()
}
