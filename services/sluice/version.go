package sluice

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/services/sluice/client"
)

// version is set by the linker: -ldflags "-X …/services/sluice.version=v1.2.3",
// as `make build` and the Dockerfile do. A plain `go build` leaves it empty.
var version string

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

// versionLine is the program's name, its version and the Go version.
func versionLine() string {
	info, _ := debug.ReadBuildInfo()
	return "sluice " + versionOf(version, info) + " " + runtime.Version()
}

// versionOf is the version that the linker set. Without one it is the module
// version or the commit that the Go tool recorded, and "unknown" where it
// recorded neither (a build outside a repository).
func versionOf(set string, info *debug.BuildInfo) string {
	if set != "" {
		return set
	}
	if info == nil {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	var commit, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if commit == "" {
		return "unknown"
	}
	return commit + dirty
}
