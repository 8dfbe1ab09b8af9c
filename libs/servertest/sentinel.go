package servertest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver"
)

// SentinelMaster is the name by which Sentinels started here know their master.
const SentinelMaster = "counters"

// StartSentinel starts a Sentinel of the test's own that watches a master, and
// returns its address.
func StartSentinel(t testing.TB, masterPort int) string {
	t.Helper()
	port, err := devserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\nsentinel monitor %[2]s 127.0.0.1 %d 1\nsentinel down-after-milliseconds %[2]s 1000\nsentinel failover-timeout %[2]s 5000\n", port, SentinelMaster, masterPort)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// It outlives the test's context on purpose: the cleanup below ends it.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "redis-server", file, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // killed: the error says so
	})
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	Eventually(t, time.Minute, "Sentinel to answer", func() bool { return devserver.PingRedis(t.Context(), addr) == nil })
	return addr
}
