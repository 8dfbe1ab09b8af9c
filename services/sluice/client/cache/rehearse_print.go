package cache

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/tools/rehearsal"
)

// shownKeys is how many keys the table has; JSON has all.
const shownKeys = 10

func millis(m rehearsal.Millis) string {
	return time.Duration(m).Round(100 * time.Microsecond).String()
}

// protectionText names a protection of which so many of all keys are not cached.
func protectionText(p rehearsal.Protection, notCached, all int) string {
	switch {
	case p == rehearsal.Plain:
		return "plain cache"
	case p == rehearsal.Proposed:
		return "proposed"
	case notCached == all:
		return "not cached"
	case notCached > 0:
		return fmt.Sprintf("as today, %d not cached", notCached)
	}
	return "as today"
}

// terms says what the names of the protections in a report mean.
func terms(notCached int) string {
	text := "plain cache: nothing is coalesced, whoever misses loads"
	if notCached > 0 {
		text += "; not cached: each read is a load, as today"
	}
	return text
}

// rehearsed is what --output json prints.
type rehearsed struct {
	Route string `json:"route"`
	*rehearsal.Report
	// Stampeded are keys, by what protected them.
	Stampeded map[rehearsal.Protection][]string `json:"stampeded"`
	// NotStored says why answers are not stored today, and will not be by the settings alone.
	NotStored []string `json:"notStored,omitempty"`
	// Cache is the setting proposed, in full; null where today's will do.
	Cache *catalog.Cache `json:"cache"`
}

// print is of all runs, or where it was ended before of those that were made.
func (f *rehearseFlags) print(w io.Writer, r *rehearsal.Report, keys []rehearsal.Key, route *cachedRoute, all bool) error {
	hit := map[rehearsal.Protection][]string{}
	for _, by := range []rehearsal.Protection{rehearsal.Plain, rehearsal.Today, rehearsal.Proposed} {
		hit[by] = append([]string{}, r.Stampeded(by)...)
	}
	proposed := route.proposed(r.Proposal)
	if f.output == "json" {
		return command.WriteJSON(w, rehearsed{Route: f.route, Report: r, Stampeded: hit, NotStored: route.notStored, Cache: proposed})
	}
	notCached := 0
	for i := range keys {
		if keys[i].Settings.Off {
			notCached++
		}
	}
	if err := printScenarios(w, r); err != nil {
		return err
	}
	fmt.Fprintln(w, terms(notCached))
	if err := printKeys(w, r, keys); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, by := range []rehearsal.Protection{rehearsal.Plain, rehearsal.Today, rehearsal.Proposed} {
		if !slices.ContainsFunc(r.Runs, func(run rehearsal.Run) bool { return run.Protection == by }) {
			continue
		}
		fmt.Fprintf(w, "%d of %d keys stampeded, %s%s\n", len(hit[by]), len(keys), protectionText(by, notCached, len(keys)), examples(hit[by]))
	}
	for _, why := range route.notStored {
		fmt.Fprintf(w, "not stored today: %s\n", why)
	}
	if !all && r.Proposal == nil {
		return nil // there is nothing to go by
	}
	return printProposal(w, r.Proposal, proposed, route)
}

func examples(keys []string) string {
	const most = 3
	if len(keys) == 0 {
		return ""
	}
	more := ""
	if len(keys) > most {
		more = ", …"
	}
	return ": " + strings.Join(keys[:min(most, len(keys))], ", ") + more
}

// printScenarios has a line a run, over all keys.
func printScenarios(w io.Writer, r *rehearsal.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SCENARIO\tPROTECTION\tREADS\tLOADS\tPEAK A KEY\tWAITERS P99\tP50\tP99\tSTALE\tERRORS\tSTALE FOR")
	for _, s := range rehearsal.Scenarios() {
		for i := range r.Runs {
			if run := &r.Runs[i]; run.Scenario == s {
				k := run.Worst()
				fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t%d\t%s\n", s, protectionText(run.Protection, run.NotCached(), len(run.Keys)),
					k.Reads, k.Loads, k.PeakLoads, k.WaitersP99, millis(k.P50), millis(k.P99), k.Stale, k.Errors, millis(k.StaleFor))
			}
		}
	}
	return t.Flush()
}

// printKeys has a line a key and scenario, of the keys that would suffer most,
// with what each protection made of it.
func printKeys(w io.Writer, r *rehearsal.Report, keys []rehearsal.Key) error {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	worst := func(key int) (peak int) {
		for _, run := range r.Runs {
			peak = max(peak, run.Keys[key].PeakLoads)
		}
		return peak
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(worst(b), worst(a)) })
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tLOAD\tSCENARIO\tPEAK LOADS\tLOADS\tP99\tERRORS\t(plain cache → today → proposed)")
	for _, key := range order[:min(len(order), shownKeys)] {
		for _, s := range rehearsal.Scenarios() {
			row := keyRow{}
			for _, run := range r.Runs {
				if run.Scenario == s {
					row.add(&run.Keys[key])
				}
			}
			if row.peak != nil {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", keys[key].Name, keys[key].Latency.Round(time.Millisecond/10), s, row.text())
			}
		}
	}
	return t.Flush()
}

// keyRow is a key in one scenario, under each protection in turn.
type keyRow struct{ peak, loads, p99, errors []string }

func (r *keyRow) add(k *rehearsal.KeyResult) {
	peak := fmt.Sprint(k.PeakLoads)
	if k.Stampeded {
		peak += "!"
	}
	r.peak, r.loads = append(r.peak, peak), append(r.loads, fmt.Sprint(k.Loads))
	r.p99, r.errors = append(r.p99, millis(k.P99)), append(r.errors, fmt.Sprint(k.Errors))
}

func (r *keyRow) text() string {
	var cells []string
	for _, cell := range [][]string{r.peak, r.loads, r.p99, r.errors} {
		cells = append(cells, strings.Join(cell, " → "))
	}
	return strings.Join(cells, "\t")
}

// proposed is the route's setting with what is proposed, nil where nothing is.
func (r *cachedRoute) proposed(p *rehearsal.Proposal) *catalog.Cache {
	if p == nil {
		return nil
	}
	c := r.cache
	if p.On {
		c.Enabled = new(true)
	}
	for _, change := range []struct {
		to *string
		d  time.Duration
	}{{&c.TTL, p.TTL}, {&c.StaleWhileRevalidate, p.StaleWhileRevalidate}, {&c.StaleIfError, p.StaleIfError}} {
		if change.d > seconds(*change.to) {
			*change.to = plainDuration(change.d)
		}
	}
	return &c
}

// plainDuration is as people write them: 10m, not 10m0s.
func plainDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// printProposal prints what to set, as the catalog has it.
func printProposal(w io.Writer, p *rehearsal.Proposal, c *catalog.Cache, r *cachedRoute) error {
	switch {
	case p == nil && len(r.notStored) > 0:
		fmt.Fprintln(w, "no setting proposed: what was played is what these would do for answers that are stored")
		return nil
	case p == nil:
		fmt.Fprintln(w, "nothing to set: no reader waited long, and none got an error that an old answer could have spared it")
		return nil
	}
	fmt.Fprintln(w)
	for _, why := range p.Why {
		fmt.Fprintf(w, "# %s\n", why)
	}
	if r.identifies() != "" && len(r.notStored) > 0 {
		fmt.Fprintf(w, "# by itself this stores nothing: %s\n", identifiedRule)
	}
	fmt.Fprintf(w, "# what an answer's own Cache-Control says goes before it; of sluice services get %s:\n", r.service.Name)
	document, err := plainFields(c)
	if err != nil {
		return err
	}
	block := map[string]any{"cache": document}
	if r.pattern != "" {
		block = map[string]any{"endpoints": []any{map[string]any{"pattern": r.pattern, "cache": document}}}
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(block); err != nil {
		return fmt.Errorf("print the setting: %w", err)
	}
	return enc.Close()
}

// plainFields are a document's by their names on the wire.
func plainFields(v any) (fields map[string]any, err error) {
	data, err := json.Marshal(v)
	if err == nil {
		err = yaml.Unmarshal(data, &fields) // JSON is YAML, whose whole numbers stay whole
	}
	if err != nil {
		return nil, fmt.Errorf("print the setting: %w", err)
	}
	return fields, nil
}
