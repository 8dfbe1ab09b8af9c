package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/sluice-platform/sluice/libs/devserver/withservers"
)

func main() {
	envFile := flag.String("print-env", "", "also write the environment as export lines into this `file`")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: with-servers [--print-env FILE] -- COMMAND [ARGUMENT…]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	code, err := withservers.Run(context.Background(), withservers.Config{Command: flag.Args(), EnvFile: *envFile})
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-servers:", err)
	}
	os.Exit(code)
}
