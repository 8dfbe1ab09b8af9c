package sluice

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/services/sluice/client"
)

// version is set at build time: -ldflags "-X …/services/sluice.version=v1.2.3".
var version = "dev"

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  client.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), versionLine())
		},
	}
}

// versionLine is version, commit where the build knows it, and toolchain.
func versionLine() string {
	line := "sluice " + version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				line += " " + s.Value[:min(12, len(s.Value))]
			}
			if s.Key == "vcs.modified" && s.Value == "true" {
				line += " (modified)"
			}
		}
	}
	return line + " " + runtime.Version()
}
