package sluice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/services/sluice/client"
	"github.com/sluice-platform/sluice/services/sluice/config"
)

func newRun() *cobra.Command {
	var from sources
	var targets []string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run modules: all, or any subset",
		Long:  "Run modules in this process. What a module needs is started with it.\n\n" + describeTable(),
		Args:  client.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			loaded, err := from.load(cmd, nil)
			if err != nil {
				return err
			}
			return run(cmd.Context(), loaded.Config, targets, cmd.ErrOrStderr())
		},
	}
	from.register(cmd)
	cmd.Flags().StringSliceVar(&targets, "target", []string{targetAll}, "modules to run, separated by commas")
	return cmd
}

func run(ctx context.Context, cfg config.Config, targets []string, stderr io.Writer) error {
	log := newLogger(cfg.Log, stderr)
	slog.SetDefault(log) // what libraries print with package log, such as net/http, becomes lines of it
	p, err := newProcess(cfg, log, targets)
	if err != nil {
		return err
	}
	log.Info("running", "version", versionLine(), "modules", strings.Join(p.names, ","), "admin", p.admin.Addr())
	return p.run(ctx)
}

// process is one running table: its modules, the admin port around them and
// the clients they share.
type process struct {
	names   []string
	group   *service.Group
	admin   *service.Admin
	clients *clients
}

// newProcess constructs the targets' modules, and takes the admin port; extra
// modules of a mode are put after them. Nothing runs yet.
func newProcess(cfg config.Config, log *slog.Logger, targets []string, extra ...service.Module) (*process, error) {
	shared := &clients{cfg: cfg, log: log, registry: service.NewRegistry()}
	modules, err := choose(table(cfg), targets, shared)
	if err != nil {
		return nil, err
	}
	modules = append(modules, extra...)
	p := &process{clients: shared}
	for _, m := range modules {
		p.names = append(p.names, m.Name)
	}
	if p.group, err = service.NewGroup(log, modules); err == nil {
		p.group.DrainDelay, p.group.StopTimeout = cfg.Stop.DrainDelay, cfg.Stop.Timeout
		p.admin, err = service.NewAdmin(cfg.Admin, service.AdminDeps{Group: p.group, Registry: shared.registry, Log: log})
	}
	if err != nil {
		return nil, errors.Join(err, shared.close())
	}
	return p, nil
}

// run blocks until ctx is cancelled or a module fails, and returns after all
// has stopped and the clients are closed.
func (p *process) run(ctx context.Context) error {
	err := p.admin.Run(ctx)
	if closed := p.clients.close(); closed != nil {
		err = errors.Join(err, closed)
	}
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// discard gives back what newProcess took, for a process that is not run.
func (p *process) discard() error { return errors.Join(p.admin.Close(), p.clients.close()) }

// background is for clients whose constructors take a context that must
// outlive the call; their end is clients.close.
func background() context.Context { return context.Background() }
