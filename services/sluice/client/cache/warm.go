package cache

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/command"
	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"
)

const (
	envGateway     = "SLUICE_GATEWAY"
	defaultGateway = "http://127.0.0.1:8080"
)

const warmLong = `Ask a gateway for paths, so that their answers are stored before clients want them.

The paths come from a list (--file): one a line, /path?query, or host/path?query where the gateway
serves several hosts; empty lines and those that begin with # are passed over. Or they are the paths
that clients asked for most often (--top), counted from the control plane's usage events. Events name
no query, and for an endpoint of the catalog its pattern: patterns with wildcards need a list.

Each path is asked for once, in random order and at random instants within the rate, since what is
stored together dies together. (A gateway besides shortens freshness of a minute or more by up to a
twentieth, at random.)

A request is made as the headers say and nothing is added to them, not even Accept-Encoding. Where a
route is not shared, answers to requests with an identity are kept apart from those without: give the
identity that clients have. The rules in force hold for these requests as for any other.`

// warmFlags are the command's, as they were given.
type warmFlags struct {
	file    string
	hottest hottest
	header  []string
	rate    float64
	// parallel bounds the requests under way: a slow service is not flooded by
	// a rate that it cannot keep up with.
	parallel  int
	maxErrors int
	timeout   time.Duration
}

func warmCommand(c *rest.Connection) *cobra.Command {
	var f warmFlags
	gateway := &rest.Connection{Flag: "--gateway", Env: envGateway, Fallback: defaultGateway}
	cmd := &cobra.Command{
		Use: "warm (--file FILE | --top N)", Short: "Ask a gateway for paths, so that their answers are stored", Long: warmLong, Args: command.NoArgs,
		Example: "  sluice cache warm -f paths.txt --rate 20\n  sluice cache warm --top 200 --since 2h --service shop\n" +
			"  zcat sitemap.txt.gz | sluice cache warm -f - --gateway https://gw.example -H 'Host: shop.example'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := newWarming(gateway, &f)
			if err != nil {
				return err
			}
			targets, err := f.targets(cmd, c)
			if err != nil {
				return err
			}
			return w.report(cmd.Context(), targets, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "a list of paths, - for standard input")
	flags.IntVar(&f.hottest.top, "top", 0, "so many of the paths asked for most often")
	flags.DurationVar(&f.hottest.since, "since", time.Hour, "of --top: count requests of this time until now")
	flags.StringVar(&f.hottest.service, "service", "", "of --top: only paths of this service")
	flags.IntVar(&f.hottest.events, "events", 20000, "of --top: read so many of the newest events at most")
	flags.StringVar(&gateway.URL, "gateway", "", "the gateway (default $"+envGateway+", else "+defaultGateway+")")
	flags.StringArrayVarP(&f.header, "header", "H", nil, "a header of every request, 'Name: value'; may be repeated")
	flags.Float64Var(&f.rate, "rate", 50, "requests a second at most")
	flags.IntVar(&f.parallel, "parallel", 32, "requests under way at most")
	flags.IntVar(&f.maxErrors, "max-errors", 10, "stop, with exit code 1, when more paths than this failed")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "of one request")
	cmd.MarkFlagsOneRequired("file", "top")
	for _, name := range []string{"top", "since", "service", "events"} {
		cmd.MarkFlagsMutuallyExclusive("file", name)
	}
	return cmd
}

// check names the flag that no run could obey.
func (f *warmFlags) check() error {
	switch {
	case !(f.rate > 0 && f.rate <= 10_000): // NaN is neither
		return fmt.Errorf("--rate must be above 0 and at most 10000, not %g", f.rate)
	case f.parallel < 1 || f.parallel > 1000:
		return fmt.Errorf("--parallel must be 1 to 1000, not %d", f.parallel)
	case f.maxErrors < 0:
		return fmt.Errorf("--max-errors must be 0 or more, not %d", f.maxErrors)
	case f.timeout <= 0:
		return fmt.Errorf("--timeout must be above 0, not %s", f.timeout)
	case f.file != "":
		return nil
	}
	return f.hottest.check()
}

func (f *warmFlags) targets(cmd *cobra.Command, c *rest.Connection) ([]warmTarget, error) {
	if f.file != "" {
		return readTargets(f.file, cmd.InOrStdin())
	}
	return f.hottest.read(cmd.Context(), c, time.Now(), cmd.ErrOrStderr())
}

func newWarming(gateway *rest.Connection, f *warmFlags) (*warming, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	base, err := gateway.Base()
	if err != nil {
		return nil, err
	}
	header, err := warmHeader(f.header)
	if err != nil {
		return nil, err
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the program's HTTP transport is not Go's")
	}
	transport = transport.Clone()
	transport.MaxIdleConnsPerHost = f.parallel
	transport.DisableCompression = true // what is asked for is what the headers say
	return &warming{
		base: base, host: header.Get("Host"), header: header, rate: f.rate, parallel: f.parallel, maxErrors: f.maxErrors,
		client: &http.Client{Timeout: f.timeout, Transport: transport, CheckRedirect: rest.HTTPClient.CheckRedirect},
		now:    time.Now,
	}, nil
}

var errInterrupted = errors.New("interrupted before all paths were asked for")
