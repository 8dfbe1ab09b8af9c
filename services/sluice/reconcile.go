package sluice

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/services/sluice/client"
	"github.com/sluice-platform/sluice/services/sluice/config"
	"github.com/sluice-platform/sluice/services/sluice/reconcile"
)

// errDifferences ends the command with exit code 1; the report says the rest.
var errDifferences = errors.New("reconcile: there are differences")

// reconcileFlags are the flags of sluice reconcile.
type reconcileFlags struct {
	from   sources
	tenant string
	wait   time.Duration
	asJSON bool
}

func newReconcile() *cobra.Command {
	var f reconcileFlags
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Hold counters, checkpoints, ledger and usage events against each other",
		Long: "Compare, for each quota counter, what Redis, the keeper's checkpoints, the wallets' ledger\n" +
			"and the usage events say, and print every difference with its likely cause. It only reads,\n" +
			"with the configuration of sluice run. What is merely under way is looked at again for --wait.\n" +
			"Beside sluice dev (make run), give the --set flags that it prints when it is ready.\n\n" +
			"The exit code is 0 when all agree, 1 when they do not or when one cannot be read.",
		Example: "  sluice reconcile --config sluice.yaml\n" +
			"  sluice reconcile --config sluice.yaml --tenant acme --json",
		Args: client.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.from.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", "", "only this `tenant`'s counters; default all")
	flags.DurationVar(&f.wait, "wait", 45*time.Second, "how long counters that differ are looked at again: longer than keeper.checkpointEvery")
	flags.BoolVar(&f.asJSON, "json", false, "print the report as JSON")
	return cmd
}

func (f *reconcileFlags) run(cmd *cobra.Command) (err error) {
	if f.wait < 0 {
		return errors.New("--wait must not be negative")
	}
	loaded, err := f.from.load(cmd, nil)
	if err != nil {
		return err
	}
	cfg := loaded.Config
	shared := &clients{cfg: cfg, log: slog.New(slog.DiscardHandler), registry: service.NewRegistry()}
	defer func() { err = errors.Join(err, shared.close()) }()
	from, err := reconcileSources(shared)
	if err != nil {
		return err
	}
	report, err := reconcile.Run(cmd.Context(), from, reconcile.Options{
		TenantID: f.tenant, Wait: f.wait, EventsSince: eventsSince(cfg, time.Now()),
		Progress: progress(cmd.ErrOrStderr()),
	})
	if err != nil {
		return fmt.Errorf("reconcile: %w", err)
	}
	if err := f.print(cmd.OutOrStdout(), report); err != nil {
		return err
	}
	if len(report.Differences) > 0 {
		return errDifferences
	}
	return nil
}

// progress prints each step, and one that repeats only when its number changes.
func progress(w io.Writer) func(step string, counters int) {
	last := ""
	return func(step string, counters int) {
		if line := fmt.Sprintf("%s: %d counters", step, counters); line != last {
			fmt.Fprintln(w, line)
			last = line
		}
	}
}

func reconcileSources(c *clients) (reconcile.Sources, error) {
	pool, err := c.Pool()
	if err != nil {
		return reconcile.Sources{}, err
	}
	counters, err := c.Redis()
	if err != nil {
		return reconcile.Sources{}, err
	}
	usage, err := c.Usage()
	if err != nil {
		return reconcile.Sources{}, err
	}
	return reconcile.Sources{Pool: pool, Redis: counters, KeyPrefix: c.cfg.Redis.Counters.KeyPrefix, Usage: usage}, nil
}

// eventsSince is from when on the indexer keeps every event.
func eventsSince(cfg config.Config, now time.Time) time.Time {
	return usagestore.OldestKept(cfg.Indexer.RetentionDays, now)
}

func (f *reconcileFlags) print(w io.Writer, report reconcile.Report) error {
	if f.asJSON {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(report)
	}
	for _, d := range report.Differences {
		fmt.Fprintf(w, "%s\n  %s: %s\n  %s: %s\n  %s\n", d.Counter, d.Between[0], numbersText(d.Have[0]), d.Between[1], numbersText(d.Have[1]), d.Cause)
	}
	fmt.Fprintf(w, "%d counters compared, %d of them without events (older than what is kept): %d differences\n",
		report.Counters, report.Unchecked, len(report.Differences))
	return nil
}

func numbersText(n reconcile.Numbers) string {
	text := fmt.Sprintf("net %d", n.Net)
	for _, part := range []struct {
		name string
		n    int64
	}{{"consumed", n.Consumed}, {"refunded", n.Refunded}, {"forfeited", n.Forfeited}, {"granted", n.Granted}} {
		if part.n != 0 {
			text += fmt.Sprintf(", %s %d", part.name, part.n)
		}
	}
	return text
}
