package cache

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/schemas/events/purges"
)

// Command returns the group, to be mounted below the root.
func Command() *cobra.Command {
	cmd := &cobra.Command{Use: "cache", Short: "Purge, warm and rehearse answers that gateways store", SilenceUsage: true}
	c := &rest.Connection{}
	c.AddFlags(cmd)
	return command.Group(cmd, purgeCommand(c), purgesCommand(c), warmCommand(c), rehearseCommand(c))
}

// purgeFlags are the flags that fields of a purge come from.
var purgeFlags = map[string]string{"url": "--path", "prefix": "--prefix", "tag": "--tag", "all": "--all", "service": "SERVICE"}

func purgeCommand(c *rest.Connection) *cobra.Command {
	var target struct {
		Service string `json:"service"`
		URL     string `json:"url,omitempty"`
		Prefix  string `json:"prefix,omitempty"`
		Tag     string `json:"tag,omitempty"`
		All     bool   `json:"all,omitempty"`
	}
	cmd := &cobra.Command{
		Use: "purge SERVICE", Short: "Purge a URL, a prefix, a tag, or all of a service", Args: command.Exactly(1, "the name of a service"),
		Example: "  sluice cache purge shop --path /shop/item?id=4711\n  sluice cache purge shop --prefix /shop/\n" +
			"  sluice cache purge shop --tag product-4711\n  sluice cache purge shop --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, is := range []bool{target.URL != "", target.Prefix != "", target.Tag != "", target.All} {
				if is {
					given++
				}
			}
			if given != 1 {
				return errors.New("give exactly one of --path, --prefix, --tag and --all")
			}
			for flag, path := range map[string]string{"path": target.URL, "prefix": target.Prefix} {
				if path != "" && path[0] != '/' {
					return fmt.Errorf("--%s must begin with a slash, as in /shop/, not %q", flag, path)
				}
			}
			target.Service = args[0]
			var made purges.Purge
			if err := c.Do(cmd.Context(), rest.Call{Method: http.MethodPost, Path: "/v1/purges", Body: target, Into: &made, Flags: purgeFlags}); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "purged %s of %s (version %d)\n", targetText(made), made.Service, made.Version)
			return nil
		},
	}
	// Not --url: that is the control plane's, of every command.
	cmd.Flags().StringVar(&target.URL, "path", "", "a path as clients ask for it, with its query or for all queries")
	cmd.Flags().StringVar(&target.Prefix, "prefix", "", "the beginning of paths")
	cmd.Flags().StringVar(&target.Tag, "tag", "", "a tag that the service gave its answers")
	cmd.Flags().BoolVar(&target.All, "all", false, "every answer of the service")
	return cmd
}

func targetText(p purges.Purge) string {
	switch {
	case p.URL != "":
		return "url " + p.URL
	case p.Prefix != "":
		return "prefix " + p.Prefix
	case p.Tag != "":
		return "tag " + p.Tag
	}
	return "all"
}

func purgesCommand(c *rest.Connection) *cobra.Command {
	var output, service string
	cmd := &cobra.Command{
		Use: "purges", Short: "List the purges of the last days", Args: command.NoArgs,
		Example: "  sluice cache purges --service shop",
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			if service != "" {
				query.Set("service", service)
			}
			items, err := rest.All[purges.Purge](cmd.Context(), c, "/v1/purges", query, 0)
			if err != nil {
				return err
			}
			return command.Show(cmd.OutOrStdout(), output, items, []string{"SERVICE", "PURGED", "AT", "VERSION"}, func(p purges.Purge) []string {
				return []string{p.Service, strings.TrimSpace(targetText(p)), p.At.Format(time.RFC3339), fmt.Sprint(p.Version)}
			})
		},
	}
	cmd.Flags().StringVar(&service, "service", "", "only purges of this service")
	command.OutputFlag(cmd, &output)
	return cmd
}
