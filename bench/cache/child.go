package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-platform/sluice/bench/fleet"
)

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

func (n node) run(ctx context.Context) error {
	if n.Gateway != nil {
		return n.Gateway.run(ctx)
	}
	read, err := n.reader(ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", n.Contender, err)
	}
	fleet.Say(sayReady)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); fleet.Say(sayWarmed) {
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
	return fleet.Report(&t)
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
	fleet.Say(sayBegin)
	defer fleet.Say(sayEnd)
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

// readOn is the hot key: reads at the node's rate, whether earlier ones have returned or not.
func (n node) readOn(ctx context.Context, read reader, t *tally) {
	rate := n.Rate
	if n.Proxy != "" {
		rate = n.HTTPRate
	}
	fleet.AtRate(ctx, float64(rate)/float64(n.Nodes), n.For, func(due time.Time) { n.one(ctx, read, due, t) })
}
