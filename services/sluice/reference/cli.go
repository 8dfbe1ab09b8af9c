package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/services/sluice"
)

// CLI is cli.md.
func CLI() ([]byte, error) {
	var b strings.Builder
	b.WriteString("# Commands\n\n" + notice)
	root := sluice.NewCommand()
	fmt.Fprintf(&b, "`sluice`: %s.\n", root.Short)
	commands(&b, root)
	return []byte(b.String()), nil
}

func commands(b *strings.Builder, parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		fmt.Fprintf(b, "\n## %s\n\n", c.CommandPath())
		about := c.Long
		if about == "" {
			about = c.Short
		}
		fmt.Fprintf(b, "```\n%s\n\n%s\n", strings.TrimSpace(about), c.UseLine())
		if flags := c.LocalFlags().FlagUsages(); flags != "" {
			fmt.Fprintf(b, "\n%s", strings.TrimRight(flags, "\n")+"\n")
		}
		if flags := c.InheritedFlags().FlagUsages(); flags != "" {
			fmt.Fprintf(b, "\n%s", strings.TrimRight(flags, "\n")+"\n")
		}
		b.WriteString("```\n")
		commands(b, c)
	}
}
