package withservers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Config says what to run. Command is required.
type Config struct {
	// Command and its arguments.
	Command []string
	// EnvFile, when set, receives the environment as export lines for a shell to source.
	EnvFile string
}

const (
	// startLimit is generous: two JVMs starting on two busy cores have taken 30 s.
	startLimit = 3 * time.Minute
	stopLimit  = 30 * time.Second
	// commandGrace is how long an interrupted command may take before it is killed.
	commandGrace = 20 * time.Second
)

// Run starts what is missing, runs the command, stops everything, and returns the command's exit code; 1 with an error
// when it did not come to that. SIGINT and SIGTERM reach the command first and end everything in order.
func Run(ctx context.Context, c Config) (int, error) {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer release()

	work, err := os.MkdirTemp("", "sluice-servers-")
	if err != nil {
		return 1, fmt.Errorf("make a folder for the servers' data: %w", err)
	}
	defer os.RemoveAll(work)
	// Postgres runs as another user when we are root, and must pass through.
	if err := os.Chmod(work, 0o755); err != nil {
		return 1, fmt.Errorf("open the servers' folder: %w", err)
	}

	set := newSet(work)
	defer set.stop()
	startCtx, cancel := context.WithTimeout(ctx, startLimit)
	err = set.start(startCtx)
	cancel()
	if err != nil {
		return 1, err
	}
	if c.EnvFile != "" {
		if err := writeEnv(c.EnvFile, set.env()); err != nil {
			return 1, err
		}
	}
	return runCommand(ctx, c.Command, set.env())
}

// runCommand gives the command a process group of its own, so that whatever it leaves behind can be ended with it.
func runCommand(ctx context.Context, command, env []string) (int, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = commandGrace
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("run %s: %w", command[0], err)
	}
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case ctx.Err() != nil:
		return 130, errors.New("interrupted")
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), nil
	default:
		return 1, fmt.Errorf("run %s: %w", command[0], err)
	}
}

// writeEnv writes export lines, whole or not at all: a shell may be waiting for the file to appear.
func writeEnv(path string, env []string) error {
	var b strings.Builder
	for _, pair := range env {
		key, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(&b, "export %s='%s'\n", key, strings.ReplaceAll(value, "'", `'\''`))
	}
	part := path + ".part"
	if err := os.WriteFile(part, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write the environment: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("write the environment: %w", err)
	}
	return nil
}
