package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"
	"github.com/spf13/cobra"
)

// OutputFlag adds --output, and checks it.
func OutputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", "table or json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *output != "table" && *output != "json" {
			return fmt.Errorf("--output must be table or json, not %q", *output)
		}
		return nil
	}
}

// Show prints items as a table or as a JSON array.
func Show[T any](w io.Writer, output string, items []T, columns []string, row func(T) []string) error {
	if output == "json" {
		if items == nil {
			items = []T{} // an empty list is [], not null
		}
		return WriteJSON(w, items)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	for _, item := range items {
		fmt.Fprintln(t, strings.Join(row(item), "\t"))
	}
	return t.Flush()
}

// PrintJSON does a call and prints its answer.
func PrintJSON(cmd *cobra.Command, c *rest.Connection, r rest.Call) error {
	var answer json.RawMessage
	r.Into = &answer
	if err := c.Do(cmd.Context(), r); err != nil {
		return err
	}
	return WriteJSON(cmd.OutOrStdout(), answer)
}

// WriteJSON writes a value, indented.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// TableTime is RFC 3339 in milliseconds, of which events are, and of one width.
const TableTime = "2006-01-02T15:04:05.000Z07:00"
