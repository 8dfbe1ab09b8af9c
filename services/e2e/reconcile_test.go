//go:build integration

package e2e_test

import (
	"errors"
	"os/exec"
	"strings"

	"github.com/redis/go-redis/v9"
)

// reconcile is sluice reconcile beside the stack: its exit code, and what it prints.
func (s *stack) reconcile(wait string) (code int, report string) {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), binary, "reconcile", "--config", s.gates[0].config, "--wait", wait).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		s.t.Fatalf("reconcile: %v", err)
	}
	return code, string(out)
}

// holdReconciled holds that Redis, checkpoints, ledger and the usage index say the
// same of everything the stack has charged, and that a job is told by exit code,
// counter and cause where they do not.
func (s *stack) holdReconciled(counter string) {
	s.t.Helper()
	if code, report := s.reconcile("2m"); code != 0 || !strings.Contains(report, ": 0 differences") {
		s.t.Fatalf("all places agree: exit code %d\n%s", code, report)
	}
	client := redis.NewClient(&redis.Options{Addr: s.redisAddr})
	defer client.Close()
	if err := client.IncrBy(s.t.Context(), s.redisPrefix+counter+":c", 1).Err(); err != nil {
		s.t.Fatal(err)
	}
	code, report := s.reconcile("0s")
	for _, want := range []string{counter, "redis: net", "checkpoint: net", "charged, and not checkpointed", "have no event"} {
		if code != 1 || !strings.Contains(report, want) {
			s.t.Errorf("a unit more in Redis: exit code %d, no %q in\n%s", code, want, report)
		}
	}
}
