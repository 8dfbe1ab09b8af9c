package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

// each is processor time a decision.
func (r result) each(spent time.Duration) string {
	return fmt.Sprintf("%.1f µs", float64(spent.Nanoseconds())/1000/float64(max(1, r.tally.Took.N)))
}

// columns of each scenario, after the name.
var columns = map[string][]struct {
	name  string
	value func(traffic, result) string
}{
	cost: {
		{"decisions a second", func(t traffic, r result) string { return fmt.Sprintf("%.0f", float64(r.tally.Took.N)/t.For.Seconds()) }},
		{"Redis, a decision", func(_ traffic, r result) string { return r.each(r.redis) }},
		{"process, a decision", func(_ traffic, r result) string { return r.each(r.tally.CPU) }},
		{"errors", faults},
	},
	rate: {
		{"p50", quantile(0.5)}, {"p99", quantile(0.99)}, {"max", quantile(1)}, {"errors", faults},
	},
	race: {
		{"passed", func(_ traffic, r result) string { return fmt.Sprint(r.tally.Passed) }},
		{"denied", func(_ traffic, r result) string { return fmt.Sprint(r.tally.Denied) }},
		{"errors", faults},
		{"units of rule 1 gone", func(_ traffic, r result) string { return fmt.Sprint(r.used) }},
		{"of requests that did not pass", func(_ traffic, r result) string { return fmt.Sprint(r.used - r.tally.Passed) }},
	},
	silence: {
		{"asked", func(_ traffic, r result) string { return fmt.Sprint(r.tally.Took.N) }},
		{"passed", func(_ traffic, r result) string { return fmt.Sprint(r.tally.Passed) }},
		{"denied", func(_ traffic, r result) string { return fmt.Sprint(r.tally.Denied) }},
		{"told that nothing is known", faults},
		{"p50", quantile(0.5)}, {"p99", quantile(0.99)}, {"max", quantile(1)},
		{"all well again after", func(_ traffic, r result) string { return ms(r.tally.Back) }},
	},
}

func quantile(q float64) func(traffic, result) string {
	return func(_ traffic, r result) string { return ms(r.tally.Took.Quantile(q)) }
}

func faults(_ traffic, r result) string {
	if r.tally.Errors == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.80s)", r.tally.Errors, r.tally.Fault)
}

// says is a table's first line.
func says(t traffic, scenario string, rules int) string {
	switch scenario {
	case cost:
		return fmt.Sprintf("Cost, rules: %d. %d processes of %d workers ask for %s, one after the other.", rules, t.Nodes, t.Workers, t.For)
	case rate:
		return fmt.Sprintf("Rate, rules: %d. %d processes ask %d times a second together for %s.", rules, t.Nodes, t.Rate, t.For)
	case race:
		return fmt.Sprintf("Race, rules: %d. %d workers ask %d times each for one tenant; the last rule lets %d pass.",
			rules, t.Nodes*t.Workers, t.Asks, t.Limit)
	}
	return fmt.Sprintf("Silence, rules: %d. Redis is stopped for %s while %d processes ask %d times a second together; what is asked meanwhile.",
		rules, t.Silence, t.Nodes, t.SilenceRate)
}

func table(w io.Writer, t traffic, scenario string, rules int, results []result) {
	head, rule := "| |", "| --- |"
	for _, c := range columns[scenario] {
		head += " " + c.name + " |"
		rule += " --- |"
	}
	fmt.Fprintf(w, "\n%s\n\n%s\n%s\n", says(t, scenario, rules), head, rule)
	for _, r := range results {
		line := "| " + r.contender.name + " |"
		for _, c := range columns[scenario] {
			line += " " + c.value(t, r) + " |"
		}
		fmt.Fprintln(w, line)
	}
}

func notes(w io.Writer, all []contender) {
	versions := map[string]string{"": "this"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			versions[m.Path] = m.Version
		}
	}
	fmt.Fprint(w, "\n| | version | used as |\n| --- | --- | --- |\n")
	for _, c := range all {
		fmt.Fprintf(w, "| %s | %s | %s |\n", c.name, versions[c.part], c.setup)
	}
}

// machine says what else kept it busy when the run began: times mean little where that was much.
func machine() string {
	load := "unknown"
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(text), " ")
	}
	return fmt.Sprintf("%d cores, load average %s before the run", runtime.NumCPU(), load)
}
