package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// suggestionDistance is how many letters may differ, as in cobra's own
// suggestions for the first word.
const suggestionDistance = 2

// Group makes cmd a group: alone it prints its help, and a word that
// is none of its commands is an error, which cobra makes of the first word
// only. It keeps an error from being followed by a page of usage.
func Group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	for _, sub := range below {
		sub.SilenceUsage = true
		sub.PreRunE = required(sub.PreRunE)
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

// NoArgs takes no argument, and says so. It is for cobra.Command's Args.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument such as %q, only flags; %s --help lists them", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	return nil
}

// Exactly takes just as many arguments as what it names: "a decision ID".
func Exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("give %s%s", what, UsageOf(cmd))
		case len(args) < n:
			return fmt.Errorf("%s is missing: give %s%s", strings.Fields(cmd.Use)[1+len(args)], what, UsageOf(cmd))
		case len(args) > n:
			return fmt.Errorf("give %s, not %d arguments%s", what, len(args), UsageOf(cmd))
		}
		return nil
	}
}

// Some takes one argument or more.
func Some(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("give %s%s", what, UsageOf(cmd))
		}
		return nil
	}
}

// UsageOf is the command's line, to follow what is missing of it.
func UsageOf(cmd *cobra.Command) string {
	return "; usage: " + strings.TrimSuffix(cmd.UseLine(), " [flags]")
}

// required checks the flags that must be given, after what comes before, in our
// words: those of cobra come only after this.
func required(before func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if before != nil {
			if err := before(cmd, args); err != nil {
				return err
			}
		}
		if cmd.ValidateRequiredFlags() == nil {
			return nil
		}
		var missing []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if _, must := f.Annotations[cobra.BashCompOneRequiredFlag]; must && !f.Changed {
				missing = append(missing, "--"+f.Name)
			}
		})
		return fmt.Errorf("give %s%s", strings.Join(missing, " and "), UsageOf(cmd))
	}
}
