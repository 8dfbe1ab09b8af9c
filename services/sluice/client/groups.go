package client

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// suggestionDistance is how many letters may differ, as in cobra's own
// suggestions for the first word.
const suggestionDistance = 2

// withSubcommands makes cmd a group: alone it prints its help, and a word that
// is none of its commands is an error, which cobra makes of the first word
// only. It keeps an error from being followed by a page of usage.
func withSubcommands(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	for _, sub := range below {
		sub.SilenceUsage = true
	}
	cmd.AddCommand(below...)
	cmd.SuggestionsMinimumDistance = suggestionDistance
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	// Flags are parsed before Args is asked: those of the misspelled command
	// are unknown here, and not what is wrong. Commands below inherit this.
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
			return unknownCommand(cmd, words[0])
		}
		return FlagError(cmd, err)
	})
	return cmd
}

func unknownCommand(cmd *cobra.Command, word string) error {
	if similar := cmd.SuggestionsFor(word); len(similar) > 0 {
		return fmt.Errorf("unknown command %q for %s: did you mean %s?", word, cmd.CommandPath(), strings.Join(similar, " or "))
	}
	return fmt.Errorf("unknown command %q for %s; %s --help lists them", word, cmd.CommandPath(), cmd.CommandPath())
}

// exactly takes just as many arguments as what it names: "a decision ID".
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("give %s", what)
		case len(args) != n:
			return fmt.Errorf("give %s, not %d arguments", what, len(args))
		}
		return nil
	}
}

// some takes one argument or more.
func some(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("give %s", what)
		}
		return nil
	}
}
