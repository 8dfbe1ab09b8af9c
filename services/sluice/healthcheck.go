package sluice

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/services/sluice/client"
)

const healthcheckTimeout = 5 * time.Second

// newHealthcheck is for containers, whose images have no curl.
func newHealthcheck() *cobra.Command {
	url := "http://127.0.0.1:8089"
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask a running sluice whether it is ready (exit code 0) or not (1)",
		Args:  client.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return healthcheck(cmd.Context(), url, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&url, "url", url, "address of its admin port")
	return cmd
}

func healthcheck(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(url, "/")+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	fmt.Fprintln(out, strings.TrimSpace(string(body)))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("healthcheck: not ready (%s)", resp.Status)
	}
	return nil
}
