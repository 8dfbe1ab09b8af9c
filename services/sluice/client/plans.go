package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/libs/strictjson"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/sales"
)

var planKind = kind[sales.Plan]{
	noun: "plan", path: "/v1/plans",
	key:       func(p *sales.Plan) *string { return &p.ID },
	version:   func(p *sales.Plan) *int64 { return &p.Version },
	validate:  func(p sales.Plan) []strictjson.FieldError { return fieldErrors(plan.ValidatePlan(p)) },
	normalize: plan.NormalizePlan,
	unknown:   plan.Unknown,
	warns:     true,
	columns:   []string{"ID", "NAME", "CURRENCY", "BASE FEE", "PERIOD", "RULES", "PRICES", "VERSION"},
	row: func(p sales.Plan) []string {
		return []string{p.ID, p.Name, p.Currency, rest.FirstOf(p.BaseFee, "0"), p.Period, fmt.Sprint(len(p.Rules)), fmt.Sprint(len(p.Prices)), fmt.Sprint(p.Version)}
	},
}

func plansCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "plans", Short: "Write plans (rule templates and prices), and move customers between their versions", SilenceUsage: true}
	c := &rest.Connection{}
	c.AddFlags(cmd)
	k := planKind
	return command.Group(cmd, k.applyCommand(c), k.listCommand(c), k.getCommand(c), k.deleteCommand(c), planVersionCommand(c), moveCommand(c))
}

func planVersionCommand(c *rest.Connection) *cobra.Command {
	return &cobra.Command{
		Use: "version PLAN N", Short: "Print a version of a plan as it was written", Args: command.Exactly(2, "the ID of a plan and a version, such as pro 1"),
		Example: "  sluice plans version pro 1",
		RunE: func(cmd *cobra.Command, args []string) error {
			return command.PrintJSON(cmd, c, rest.Call{Method: http.MethodGet, Path: planKind.item(args[0]) + "/versions/" + url.PathEscape(args[1])})
		},
	}
}

// move is what is asked of the control plane, and moved is what it answers.
type move struct {
	From      int64    `json:"from"`
	To        int64    `json:"to"`
	Customers []string `json:"customers,omitempty"`
	All       bool     `json:"all,omitempty"`
	Preview   bool     `json:"preview,omitempty"`
	Cursor    string   `json:"cursor,omitempty"`
}

type moved struct {
	Customers []movedCustomer `json:"customers"`
	Remaining int             `json:"remaining"`
	Next      string          `json:"next"`
}

type movedCustomer struct {
	Customer, Refused string
	Rules             []struct{ Before, After *rules.Rule }
	Overrides         []struct{ Before, After *overrides.Override }
}

func moveCommand(c *rest.Connection) *cobra.Command {
	var m move
	cmd := &cobra.Command{
		Use: "move PLAN --from N --to N (--all | --customer ID...)", Short: "Move customers from one version of a plan to another",
		Long: "Move customers from one version of a plan to another; --preview says what would change, and changes nothing.\n" +
			"What was used stays used. A move that was broken off goes on when it is repeated.",
		Args: command.Exactly(1, "the ID of a plan"),
		Example: "  sluice plans move pro --from 1 --to 2 --all --preview\n" +
			"  sluice plans move pro --from 1 --to 2 --customer acme --customer globex",
		RunE: func(cmd *cobra.Command, args []string) error {
			if m.All == (len(m.Customers) > 0) {
				return errors.New("give --all, or --customer for each who is moved")
			}
			return moveAll(cmd, c, args[0], m)
		},
	}
	cmd.Flags().Int64Var(&m.From, "from", 0, "the version that customers are taken from")
	cmd.Flags().Int64Var(&m.To, "to", 0, "the version that they are taken to")
	cmd.Flags().StringArrayVar(&m.Customers, "customer", nil, "who is moved; may be repeated")
	cmd.Flags().BoolVar(&m.All, "all", false, "move every customer of the version")
	cmd.Flags().BoolVar(&m.Preview, "preview", false, "only say what would change")
	_ = cmd.MarkFlagRequired("from") // both flags were added above
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

// moveAll asks until nobody is left. It fails where somebody was refused.
func moveAll(cmd *cobra.Command, c *rest.Connection, plan string, m move) error {
	out, done, refused := cmd.OutOrStdout(), 0, 0
	for {
		var answer moved
		r := rest.Call{Method: http.MethodPost, Path: planKind.item(plan) + "/moves", Body: m, Into: &answer}
		if err := c.Do(cmd.Context(), r); err != nil {
			return fmt.Errorf("move customers of plan %q: %w", plan, err)
		}
		for _, one := range answer.Customers {
			if one.Refused != "" {
				refused++
				fmt.Fprintf(out, "! refuse customer %s: %s\n", one.Customer, one.Refused)
				continue
			}
			done++
			fmt.Fprintf(out, "~ move customer %s\n", one.Customer)
			for _, line := range one.lines() {
				fmt.Fprintf(out, "    %s\n", line)
			}
		}
		if m.Cursor = answer.Next; m.Cursor == "" {
			break
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%d moved, %d left on version %d\n", done, answer.Remaining, m.From)
	}
	summary := fmt.Sprintf("%d moved from version %d to %d, %d refused", done, m.From, m.To, refused)
	if m.Preview {
		summary = "preview, nothing was changed; it would be: " + summary
	}
	fmt.Fprintln(out, summary)
	if refused > 0 {
		return fmt.Errorf("%d of %d customers were refused", refused, done+refused)
	}
	return nil
}

// lines say what of a customer's rules changes, by their numbers.
func (c movedCustomer) lines() []string {
	var lines []string
	for _, r := range c.Rules {
		before, after, metric := "none", "none", ""
		if r.Before != nil {
			before, metric = limitText(*r.Before), r.Before.Metric
		}
		if r.After != nil {
			after, metric = limitText(*r.After), r.After.Metric
		}
		if before == after {
			continue // the version it names is all that changes
		}
		lines = append(lines, fmt.Sprintf("%s: %s → %s", metric, before, after))
	}
	for _, o := range c.Overrides {
		before, after, what := "whole", "whole", ""
		for _, side := range []struct {
			o    *overrides.Override
			text *string
		}{{o.Before, &before}, {o.After, &after}} {
			if side.o != nil && side.o.Limit != nil {
				*side.text, what = fmt.Sprint(*side.o.Limit), side.o.Metric+" of the running "+side.o.Period
			}
		}
		lines = append(lines, fmt.Sprintf("%s: %s → %s", what, before, after))
	}
	return lines
}
