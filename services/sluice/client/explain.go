package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"text/tabwriter"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

const (
	envAdminURL     = "SLUICE_ADMIN_URL"
	defaultAdminURL = "http://127.0.0.1:8089"

	keyPrefix = "slk_" // of a key itself, which is a secret
)

// explainQuestion is what a gateway is asked; it makes no request.
type explainQuestion struct {
	TenantID      string `json:"tenantId,omitempty"`
	UserID        string `json:"userId,omitempty"`
	ApplicationID string `json:"applicationId,omitempty"`
	APIKeyID      string `json:"apiKeyId,omitempty"`
	ByToken       bool   `json:"byToken,omitempty"`
	Path          string `json:"path,omitempty"`
	Method        string `json:"method,omitempty"`
	Service       string `json:"service,omitempty"`
	Cost          *int64 `json:"cost,omitempty"`
}

// explainAnswer is what of the answer the table shows.
type explainAnswer struct {
	Request struct {
		Method, Path, Service, Endpoint, Demands string
		Cached                                   bool
		Cost                                     int64
	}
	Rules []struct {
		ID                                         string
		Subject                                    rules.Subject
		Scope                                      rules.Scope
		Metric, Horizon, Mode, Result, By, Because string
	}
	Winners []struct {
		ID, Mode, Counter, Algorithm, Override string
		Cost, Limit, Burst, Carried            int64
		Unlimited, IdentityMissing             bool
		CountCached                            *bool
		Unreadable, OnStoreLoss                string
		Remaining                              *int64
		ResetSeconds                           float64
		RetryAfter                             int64
		WouldPass                              *bool
	}
	Refused *struct {
		Status        int
		Title, Detail string
	}
	Unread    []string
	WouldPass *bool
	// Status is that of the answer which would be given, RetryAfter its header.
	Status     int
	RetryAfter int64
	Trouble    string
	Note       string
}

func explainCommand() *cobra.Command {
	var (
		q      explainQuestion
		output string
		cost   int64
	)
	c := &rest.Connection{Flag: "--admin-url", Env: envAdminURL, Fallback: defaultAdminURL, What: "gateway"}
	cmd := &cobra.Command{
		Use: "explain (--path PATH | --service NAME)", Short: "Ask a gateway which rules hold for a request and why, without making it",
		Args: q.args, SilenceUsage: true,
		Example: "  sluice explain --path /demo/hello --tenant acme --user u1\n" +
			"  sluice explain --path /demo/report --method POST --key key_5f2c0a6e --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("cost") {
				q.Cost = &cost
			}
			return explain(cmd, c, q, output)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.URL, "admin-url", "", "the gateway's admin port (default $"+envAdminURL+", else "+defaultAdminURL+")")
	f.StringVar(&c.Token, "token", "", "a token of gateway.explain.tokens (default $"+rest.EnvToken+")")
	f.StringVar(&q.Path, "path", "", "the path, as a client would send it")
	f.StringVar(&q.Method, "method", "", "the method (default GET)")
	f.StringVar(&q.Service, "service", "", "the service, in place of a path")
	f.StringVar(&q.TenantID, "tenant", "", "the tenant")
	f.StringVar(&q.UserID, "user", "", "the user")
	f.StringVar(&q.ApplicationID, "application", "", "the application")
	f.StringVar(&q.APIKeyID, "key", "", "the API key's id; its tenant, user and application hold then")
	f.BoolVar(&q.ByToken, "by-token", false, "tenant, user and application are proved by a token")
	f.Int64Var(&cost, "cost", 0, "what the request costs (default: as the catalog says)")
	cmd.MarkFlagsMutuallyExclusive("key", "by-token")
	command.OutputFlag(cmd, &output)
	return cmd
}

// args checks what is said without a flag, and what of the flags a gateway would
// refuse by the names of its own fields.
func (q *explainQuestion) args(_ *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && strings.HasPrefix(args[0], "/"):
		return fmt.Errorf("the path is given with --path: did you mean --path %s?", args[0])
	case len(args) > 0:
		return fmt.Errorf("takes no argument such as %q: give --path PATH or --service NAME", args[0])
	case (q.Path == "") == (q.Service == ""):
		return errors.New("give --path PATH or --service NAME, one of the two")
	case q.Path != "" && q.Path[0] != '/':
		return fmt.Errorf("--path must begin with a slash, as in /demo/hello, not %q", q.Path)
	case strings.HasPrefix(q.APIKeyID, keyPrefix):
		return errors.New("--key must be the key's id (key_…, see sluice keys list), not the key itself")
	}
	return nil
}

func explain(cmd *cobra.Command, c *rest.Connection, q explainQuestion, output string) error {
	var raw json.RawMessage
	if err := c.Do(cmd.Context(), rest.Call{Method: http.MethodPost, Path: "/v1/explain", Body: q, Into: &raw}); err != nil {
		return err
	}
	if output == "json" {
		return command.WriteJSON(cmd.OutOrStdout(), raw)
	}
	var a explainAnswer
	if err := json.Unmarshal(raw, &a); err != nil {
		return fmt.Errorf("the gateway's answer is not understood: %w", err)
	}
	return a.print(cmd.OutOrStdout())
}

func (a *explainAnswer) print(w io.Writer) error {
	r, demands := a.Request, ""
	if r.Demands != "" {
		demands = ", demands " + r.Demands
	}
	fmt.Fprintf(w, "%s %s → service %s, endpoint %s, cost %d%s\n\n", r.Method, rest.FirstOf(r.Path, "(no path)"), r.Service, rest.FirstOf(r.Endpoint, "(none in the catalog)"), r.Cost, demands)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RULE\tSUBJECT\tSCOPE\tMETRIC\tHORIZON\tRESULT")
	for _, e := range a.Rules {
		scope := strings.TrimSpace(e.Scope.Service + " " + e.Scope.Endpoint)
		result := e.Result
		if e.By != "" {
			result += " to " + e.By
		}
		if e.Because != "" {
			result += ": " + e.Because
		}
		if e.Mode == rules.ModeShadow {
			result += " (shadow)"
		}
		fmt.Fprintf(t, "%s\t%s=%s\t%s\t%s\t%s\t%s\n", e.ID, e.Subject.Kind, e.Subject.Value, rest.FirstOf(scope, "everywhere"), e.Metric, e.Horizon, result)
	}
	fmt.Fprintln(t, "\nWINNER\tCOUNTER\tALGORITHM\tLEFT\tOVERRIDE\tWOULD PASS")
	for i := range a.Winners {
		fmt.Fprintln(t, strings.Join(a.winner(i), "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(a.Unread) > 0 {
		fmt.Fprintf(w, "\nthis gateway cannot read these rules: %s\n", strings.Join(a.Unread, ", "))
	}
	fmt.Fprintf(w, "\n%s\n", a.outcome())
	if a.Note != "" {
		fmt.Fprintln(w, a.Note)
	}
	return nil
}

// outcome says in a line what the request would come to.
func (a *explainAnswer) outcome() string {
	switch {
	case a.Refused != nil:
		return fmt.Sprintf("would be answered %d before any rule is asked: %s. %s", a.Refused.Status, a.Refused.Title, a.Refused.Detail)
	case a.WouldPass == nil:
		return "not known whether it would pass: " + a.Trouble
	case *a.WouldPass:
		return "would pass"
	case a.Status == 0: // of an older gateway
		return "would be denied"
	case a.RetryAfter > 0:
		return fmt.Sprintf("would be denied: %d, Retry-After %d or a little more, so that not all come back at once", a.Status, a.RetryAfter)
	case a.Status == http.StatusTooManyRequests:
		return fmt.Sprintf("would be denied: %d without Retry-After, as waiting does not help", a.Status)
	}
	return fmt.Sprintf("would be denied: %d", a.Status)
}

func (a *explainAnswer) winner(i int) []string {
	v := a.Winners[i]
	left, passes := "?", "?"
	switch {
	case v.Unlimited:
		left = "unlimited"
	case v.Remaining != nil:
		left = a.left(i)
	}
	switch {
	case v.Unreadable != "":
		left, passes = "-", "cannot be read there; onStoreLoss "+v.OnStoreLoss+" holds"
	case v.IdentityMissing:
		left, passes = "-", "no: the identity is missing"
	case v.WouldPass != nil && *v.WouldPass:
		passes = "yes"
	case v.WouldPass != nil:
		passes = fmt.Sprintf("no: costs %d", v.Cost)
		if v.RetryAfter > 0 {
			passes += fmt.Sprintf(", in %d s", v.RetryAfter)
		}
	}
	if a.Request.Cached && v.CountCached != nil && !*v.CountCached {
		passes += "; a stored answer is free"
	}
	return []string{v.ID, rest.FirstOf(v.Counter, "-"), v.Algorithm, left, rest.FirstOf(v.Override, "-"), passes}
}

// left is what a winner's counter has, and of what.
func (a *explainAnswer) left(i int) string {
	v := a.Winners[i]
	left := fmt.Sprintf("%d of %d", *v.Remaining, v.Limit)
	switch {
	case v.Burst > 0 && v.Burst != v.Limit:
		left = fmt.Sprintf("%d of burst %d, limit %d", *v.Remaining, v.Burst, v.Limit)
	case v.Carried > 0:
		left += fmt.Sprintf(", %d carried over", v.Carried)
	}
	if v.ResetSeconds > 0 { // nothing refills a wallet or a full bucket
		left += fmt.Sprintf(", reset in %.0f s", math.Ceil(v.ResetSeconds)) // up, as headers have it
	}
	return left
}
