package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("size", flag.ContinueOnError)
	root := flags.String("root", "..", "the folder with go.work")
	check := flags.Bool("check", false, "exit 1 when anything is over its bound")
	asJSON := flags.Bool("json", false, "print JSON")
	arrows := flags.String("arrows", "", "list the arrows of this package, for example services/gateway")
	if err := flags.Parse(args); err != nil {
		return err
	}
	abs, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	if *arrows != "" {
		return printArrows(out, abs, *arrows)
	}
	r, err := measure(abs)
	if err != nil {
		return err
	}
	if *asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = r.print(out)
	}
	if err == nil && *check && len(r.Over) > 0 {
		err = fmt.Errorf("%d measures are over their bound", len(r.Over))
	}
	return err
}
