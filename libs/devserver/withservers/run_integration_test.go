//go:build integration

package withservers_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver/withservers"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// build makes the command once for all tests here.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "with-servers")
	out, err := exec.Command("go", "build", "-o", bin, "../cmd/with-servers").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	return bin
}

// withoutRedis is our environment less one server: the command has to start that one and takes the others as given.
func withoutRedis() []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, withservers.EnvRedis+"=") {
			env = append(env, pair)
		}
	}
	return env
}

func TestRunStartsWhatIsMissingAndPassesTheExitCode(t *testing.T) {
	t.Parallel()
	given, _ := servertest.Redis(t)
	cmd := exec.Command(build(t), "--", "sh", "-c", "echo $"+withservers.EnvRedis+" $"+withservers.EnvKafka+"; exit 3")
	cmd.Env = withoutRedis()
	out, err := cmd.Output()
	if err == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Fatalf("exit %v, want the command's 3", err)
	}
	fields := strings.Fields(string(out))
	if len(fields) != 2 {
		t.Fatalf("the command saw %q, want two addresses", out)
	}
	if fields[0] == given {
		t.Errorf("redis at %s is the shared one: it was not started", fields[0])
	}
	if fields[1] != os.Getenv(withservers.EnvKafka) {
		t.Errorf("kafka at %s, given was %s", fields[1], os.Getenv(withservers.EnvKafka))
	}
	if conn, err := net.Dial("tcp", fields[0]); err == nil {
		conn.Close()
		t.Errorf("redis at %s is still there", fields[0])
	}
}

func TestInterruptStopsCommandAndServers(t *testing.T) {
	t.Parallel()
	envFile := filepath.Join(t.TempDir(), "env.sh")
	cmd := exec.Command(build(t), "--print-env", envFile, "--", "sleep", "infinity")
	cmd.Env = withoutRedis()
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var addr string
	servertest.Eventually(t, time.Minute, "the environment file", func() bool {
		raw, _ := os.ReadFile(envFile)
		_, rest, found := strings.Cut(string(raw), "export "+withservers.EnvRedis+"='")
		addr, _, _ = strings.Cut(rest, "'")
		return found
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130: %s", code, said.String())
	}
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Errorf("redis at %s is still there", addr)
	}
}
