package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// traffic is what every contender meets.
type traffic struct {
	// The cold key.
	Processes, Readers int
	// The expiry: reads a second in all, of libraries and through proxies, whose reads cost both sides a request.
	Nodes          int
	Rate, HTTPRate int
	TTL, For       time.Duration
	// Load is how long the source takes.
	Load time.Duration
}

type settings struct {
	traffic
	contenders []contender
	scenarios  []string
}

const (
	cold   = "cold"
	expiry = "expiry"
)

func options(args []string) (settings, error) {
	var o settings
	var only, scenarios string
	f := flag.NewFlagSet("cache", flag.ExitOnError)
	f.IntVar(&o.Processes, "processes", 20, "cold: processes")
	f.IntVar(&o.Readers, "readers", 600, "cold: readers a process")
	f.IntVar(&o.Nodes, "nodes", 4, "expiry: processes")
	f.IntVar(&o.Rate, "rate", 12000, "expiry: reads a second of all processes together")
	f.IntVar(&o.HTTPRate, "http-rate", 2000, "expiry: the same through proxies")
	f.DurationVar(&o.TTL, "ttl", time.Minute, "how long a value is fresh")
	f.DurationVar(&o.For, "for", 0, "expiry: how long; 0 is two TTLs and ten loads")
	f.DurationVar(&o.Load, "load", 900*time.Millisecond, "how long the source takes")
	f.StringVar(&only, "only", "", "contenders, separated by commas; all if empty: "+strings.Join(names(), ","))
	f.StringVar(&scenarios, "scenario", cold+","+expiry, "scenarios, separated by commas")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.For == 0 {
		o.For = 2*o.TTL + 10*o.Load
	}
	if o.Processes < 1 || o.Readers < 1 || o.Nodes < 1 || o.Rate < o.Nodes || o.HTTPRate < o.Nodes || o.TTL <= 0 || o.For <= 0 || o.Load <= 0 {
		return o, fmt.Errorf("numbers must be positive, and rates at least the number of nodes")
	}
	o.scenarios = strings.Split(scenarios, ",")
	for _, s := range o.scenarios {
		if s != cold && s != expiry {
			return o, fmt.Errorf("no scenario %q: %s or %s", s, cold, expiry)
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
