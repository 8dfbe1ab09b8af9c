package client

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/strictjson"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
)

// An override that changes no rule is taken, and told of: it may come before
// its rule, and outlives one that is deleted and created again.
var overrideKind = kind[overrides.Override]{
	noun: "override", path: "/v1/overrides",
	key:      func(o *overrides.Override) *string { return &o.ID },
	version:  func(o *overrides.Override) *int64 { return &o.Version },
	validate: func(o overrides.Override) []strictjson.FieldError { return ruleErrors(rule.ValidateOverride(o)) },
	normalize: func(o overrides.Override) overrides.Override {
		o.Origin = nil // what only the control plane writes is no difference to a file
		return rule.NormalizeOverride(o)
	},
	owned:   func(o overrides.Override) bool { return o.Origin != nil },
	warns:   true,
	columns: []string{"ID", "SUBJECT", "METRIC", "HORIZON", "LIMIT", "UNTIL", "REASON"},
	row:     overrideRow,
	filters: map[string]string{
		"tenant": "only overrides of this tenant, or of a user or application of it",
		"metric": "only overrides of this metric",
	},
}

func overrideRow(o overrides.Override) []string {
	numbers, until := "unlimited", "never"
	if o.Limit != nil {
		numbers = fmt.Sprint(*o.Limit)
	}
	if o.Burst != nil {
		numbers += fmt.Sprintf(" burst %d", *o.Burst)
	}
	if o.ValidUntil != nil {
		until = o.ValidUntil.Format(time.RFC3339)
	}
	return []string{o.ID, o.Subject.Kind + "=" + o.Subject.Value, o.Metric, rest.FirstOf(o.Window+o.Period, "every"), numbers, until, o.Reason}
}

func overridesCommand() *cobra.Command {
	k := overrideKind
	cmd := &cobra.Command{Use: "overrides", Short: "Give one subject other numbers than its rule, until a date", SilenceUsage: true}
	c := &rest.Connection{}
	c.AddFlags(cmd)
	return command.Group(cmd, setOverrideCommand(c), k.applyCommand(c), k.listCommand(c), k.getCommand(c), k.deleteCommand(c))
}

// overrideFlags are what set makes an override of.
type overrideFlags struct {
	kind, value, metric, window, period, until, reason string
	limit, burst                                       int64
	unlimited                                          bool
}

// subjectKinds are what KIND may be; elsewhere some are flags.
var subjectKinds = []string{"tenant", "user", "application", "apiKey", "service", "endpoint"}

func setOverrideCommand(c *rest.Connection) *cobra.Command {
	var flags overrideFlags
	cmd := &cobra.Command{
		Use: "set KIND VALUE --metric METRIC (--limit N | --unlimited)", Short: "Create or replace an override", Args: command.Exactly(2, "KIND and VALUE, such as tenant acme"),
		Example: "  sluice overrides set tenant acme --metric requests --window 1m --limit 300 --until 2027-01-01T00:00:00Z\n" +
			"  sluice overrides set user acme/u1 --metric reports --unlimited --reason 'internal test'",
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.kind, flags.value = args[0], args[1]
			o, err := flags.override(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return setOverride(cmd, c, o)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var name *pflag.NotExistError
		if errors.As(err, &name) && slices.Contains(subjectKinds, name.GetSpecifiedName()) {
			return fmt.Errorf("give KIND VALUE and not --%[1]s, as in %[1]s acme%[2]s", name.GetSpecifiedName(), command.UsageOf(cmd))
		}
		return command.FlagError(cmd, err)
	})
	cmd.Flags().StringVar(&flags.metric, "metric", "", "what is counted")
	cmd.Flags().StringVar(&flags.window, "window", "", "only for rates of this window, such as 1m")
	cmd.Flags().StringVar(&flags.period, "period", "", "only for quotas of this period, such as month")
	cmd.Flags().Int64Var(&flags.limit, "limit", 0, "in place of the rule's limit")
	cmd.Flags().Int64Var(&flags.burst, "burst", 0, "in place of the rule's burst")
	cmd.Flags().BoolVar(&flags.unlimited, "unlimited", false, "count and never deny")
	cmd.Flags().StringVar(&flags.until, "until", "", "when the rule's own numbers hold again (RFC 3339)")
	cmd.Flags().StringVar(&flags.reason, "reason", "", "why, for people")
	_ = cmd.MarkFlagRequired("metric") // the flag was added above
	return cmd
}

func (f *overrideFlags) override(given func(flag string) bool) (overrides.Override, error) {
	o := overrides.Override{
		Reason: f.reason, Metric: f.metric, Window: f.window, Period: f.period, Unlimited: f.unlimited,
	}
	o.Subject.Kind, o.Subject.Value = f.kind, f.value
	if given("limit") {
		o.Limit = &f.limit
	}
	if given("burst") {
		o.Burst = &f.burst
	}
	if f.until != "" {
		until, err := time.Parse(time.RFC3339, f.until)
		if err != nil {
			return o, fmt.Errorf("--until must be a time such as 2027-01-01T00:00:00Z, not %q", f.until)
		}
		o.ValidUntil = &until
	}
	var mistakes []error
	for _, e := range rule.ValidateOverride(o) {
		mistakes = append(mistakes, e)
	}
	return rule.NormalizeOverride(o), errors.Join(mistakes...)
}

// setOverride replaces the override that is there, or creates it.
func setOverride(cmd *cobra.Command, c *rest.Connection, o overrides.Override) error {
	var answer warned
	r := rest.Call{Method: http.MethodPut, Path: overrideKind.item(o.ID), Body: o, Header: map[string]string{"If-Match": "*"}, Into: &answer}
	err := c.Do(cmd.Context(), r)
	done := "~ update"
	var refused *rest.AnswerError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		r.Header, done = map[string]string{"If-None-Match": "*"}, "+ create"
		err = c.Do(cmd.Context(), r)
	}
	if err != nil {
		return fmt.Errorf("set override %s: %w", o.ID, err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s override %s\n", done, o.ID)
	answer.print(cmd.ErrOrStderr())
	return nil
}
