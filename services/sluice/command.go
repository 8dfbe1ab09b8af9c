package sluice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sluice-platform/sluice/services/sluice/client/cache"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/services/sluice/client"
	"github.com/sluice-platform/sluice/services/sluice/config"
)

// Main runs the command line and returns the exit code: 0, or after an error,
// which it prints, 1 or what the error says. Cancelling ctx stops what runs in an orderly way.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := NewCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "sluice:", err)
		var own interface{ ExitStatus() int }
		if errors.As(err, &own) {
			return own.ExitStatus()
		}
		return 1
	}
	return 0
}

// NewCommand returns the whole tree of commands.
func NewCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "sluice",
		Short:         "The gate in front of an API: rate limits and quotas, exact, fast, explainable",
		SilenceUsage:  true,
		SilenceErrors: true,
		// Completion scripts are cobra's own business and not documented here.
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(client.FlagError) // of all commands that have none of their own
	root.AddCommand(newRun(), newDev(), newConfig(), newReconcile(), newHealthcheck(), newVersion())
	root.AddCommand(client.Commands()...)
	root.AddCommand(cache.Command())
	return root
}

// sources are the flags that say where the configuration comes from.
type sources struct {
	file      string
	sets      []string
	logLevel  string
	logFormat string
	admin     string
}

func (s *sources) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.file, "config", "", "YAML file with configuration; default $SLUICE_CONFIG, else none")
	flags.StringArrayVar(&s.sets, "set", nil, "one key, as `key=value`; may be repeated and wins over file and environment")
	flags.StringVar(&s.logLevel, "log-level", "", "same as --set log.level=…")
	flags.StringVar(&s.logFormat, "log-format", "", "same as --set log.format=…")
	flags.StringVar(&s.admin, "admin-listen", "", "same as --set admin.listen=…")
}

// load merges the sources over a mode's own values.
func (s *sources) load(cmd *cobra.Command, mode map[string]any) (*config.Loaded, error) {
	options := config.Options{Mode: mode, File: s.file, Environ: os.Environ(), Sets: s.sets, Flags: map[string]string{}}
	if options.File == "" {
		options.File = os.Getenv("SLUICE_CONFIG")
	}
	for flag, key := range map[string]string{"log-level": "log.level", "log-format": "log.format", "admin-listen": "admin.listen"} {
		if f := cmd.Flags().Lookup(flag); f.Changed {
			options.Flags[key] = f.Value.String()
		}
	}
	return config.Load(options)
}

func newConfig() *cobra.Command {
	var from sources
	var annotate bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the configuration in force as YAML, secrets masked",
		Long: "Print the configuration that sluice run would have in force, given the same flags,\n" +
			"file and environment, as YAML with secrets masked. sluice dev (make run) has a\n" +
			"configuration of its own over the defaults: sluice dev --print-config.",
		Args: client.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := from.load(cmd, nil)
			if err != nil {
				return err
			}
			text, err := loaded.YAML(annotate)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	from.register(cmd)
	cmd.Flags().BoolVar(&annotate, "sources", false, "say behind each value where it came from")
	return cmd
}
