package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

func ms(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

// row is a line of a table; a time of 0 has no loads a minute.
func row(r result, of time.Duration) string {
	t := r.tally
	line := fmt.Sprintf("| %s | %d |", r.contender.name, r.loads)
	if of > 0 {
		line += fmt.Sprintf(" %.1f |", float64(r.loads)/of.Minutes())
	}
	line += fmt.Sprintf(" %d | %s | %s | %s | %d | %d | %d |",
		r.most, ms(t.Took.Quantile(0.5)), ms(t.Took.Quantile(0.99)), ms(t.Took.Max), t.Took.N, t.Errors, t.Stale)
	if t.Fault != "" {
		line += " " + t.Fault
	}
	return line
}

func table(w io.Writer, t traffic, scenario string, results []result) {
	perMinute, rule := "", ""
	if scenario == expiry {
		perMinute, rule = " a minute |", " --- |"
	}
	if scenario == cold {
		fmt.Fprintf(w, "\n%d processes × %d readers at one cold key, a load takes %s.\n\n", t.Processes, t.Readers, t.Load)
	} else {
		fmt.Fprintf(w, "\nOne key for %s: TTL %s, a load takes %s, %d processes, %d reads a second together, %d through a proxy.\n\n",
			t.For, t.TTL, t.Load, t.Nodes, t.Rate, t.HTTPRate)
	}
	fmt.Fprint(w, "| | loads |"+perMinute+" loads at once, at most | read p50 | read p99 | read max | reads | errors | stale |\n",
		"| --- | --- |"+rule+" --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range results {
		fmt.Fprintln(w, row(r, t.length(scenario)))
	}
}

// length is how long a scenario counts loads, 0 where it ends by itself.
func (t traffic) length(scenario string) time.Duration {
	if scenario == expiry {
		return t.For
	}
	return 0
}

func notes(w io.Writer, all []contender, versions map[string]string) {
	fmt.Fprint(w, "\n| | version | set up as |\n| --- | --- | --- |\n")
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

// versions are those of the parts that contenders name.
func versions(ctx context.Context, all []contender) (map[string]string, error) {
	found := map[string]string{"": "this"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			found[m.Path] = m.Version
		}
	}
	for _, c := range all {
		if c.part == "nginx" {
			v, err := nginxVersion(ctx)
			if err != nil {
				return nil, err
			}
			found[c.part] = v
		}
	}
	return found, nil
}

func nginxVersion(ctx context.Context) (string, error) {
	program, err := nginxPath()
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, program, "-v").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ask nginx for its version: %w", err)
	}
	_, v, _ := strings.Cut(strings.TrimSpace(string(out)), "nginx/")
	return v, nil
}
