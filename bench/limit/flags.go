package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// day is every rule's window.
const day = 24 * time.Hour

// traffic is what every contender meets.
type traffic struct {
	Nodes, Workers int // processes, and what asks at once in each
	Tenants        int
	Rate           int           // requests a second of all processes together
	For            time.Duration // cost and rate
	Asks           int           // race: of each worker
	Limit          int64         // race: of the last rule
	Silence        time.Duration
	SilenceRate    int
}

type settings struct {
	traffic
	contenders []contender
	scenarios  []string
}

const (
	cost    = "cost"
	rate    = "rate"
	race    = "race"
	silence = "silence"
)

var scenarios = []string{cost, rate, race, silence}

func options(args []string) (settings, error) {
	var o settings
	var only, which string
	f := flag.NewFlagSet("limit", flag.ExitOnError)
	f.IntVar(&o.Nodes, "nodes", 2, "processes")
	f.IntVar(&o.Workers, "workers", 64, "cost and race: what asks at once in each process")
	f.IntVar(&o.Tenants, "tenants", 1000, "tenants asked for in turn")
	f.IntVar(&o.Rate, "rate", 2000, "rate: requests a second of all processes together")
	f.DurationVar(&o.For, "for", 5*time.Second, "cost and rate: how long")
	f.IntVar(&o.Asks, "asks", 100, "race: how often each worker asks")
	f.Int64Var(&o.Limit, "limit", 1000, "race: how many may pass")
	f.DurationVar(&o.Silence, "silence", 5*time.Second, "silence: how long Redis is stopped")
	f.IntVar(&o.SilenceRate, "silence-rate", 400, "silence: requests a second of all processes together")
	f.StringVar(&only, "only", "", "contenders, separated by commas; all if empty: "+strings.Join(names(), ","))
	f.StringVar(&which, "scenario", strings.Join(scenarios, ","), "scenarios, separated by commas")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if min(o.Nodes, o.Workers, o.Tenants, o.Asks, int(o.Limit)) < 1 || min(o.Rate, o.SilenceRate) < o.Nodes || min(o.For, o.Silence) <= 0 {
		return o, errors.New("numbers must be positive, and rates at least the number of nodes")
	}
	o.scenarios = strings.Split(which, ",")
	for _, s := range o.scenarios {
		if !slices.Contains(scenarios, s) {
			return o, fmt.Errorf("no scenario %q: %s", s, strings.Join(scenarios, ", "))
		}
	}
	return o, o.choose(only)
}

func (o *settings) choose(only string) error {
	if only == "" {
		o.contenders = contenders
		return nil
	}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.Index(names(), name)
		if i < 0 {
			return fmt.Errorf("no contender %q: %s", name, strings.Join(names(), ", "))
		}
		o.contenders = append(o.contenders, contenders[i])
	}
	return nil
}

func names() (all []string) {
	for _, c := range contenders {
		all = append(all, c.name)
	}
	return all
}
