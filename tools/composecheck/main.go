// Command composecheck reads docker-compose.yml as Docker does and checks what Docker would only notice later: every
// image pinned, every service with a health check, every mounted file there, no port given twice.
//
//	composecheck FOLDER
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: composecheck FOLDER")
		os.Exit(2)
	}
	project, err := load(context.Background(), os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "composecheck:", err)
		os.Exit(1)
	}
	faults := check(project)
	for _, fault := range faults {
		fmt.Fprintln(os.Stderr, "composecheck:", fault)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

func load(ctx context.Context, folder string) (*types.Project, error) {
	file := filepath.Join(folder, "docker-compose.yml")
	options, err := cli.NewProjectOptions([]string{file}, cli.WithWorkingDirectory(folder), cli.WithResolvedPaths(true))
	if err != nil {
		return nil, err
	}
	return options.LoadProject(ctx)
}
