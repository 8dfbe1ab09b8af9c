//go:build integration

package devserver_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// parentMode names the variable that makes this test binary a parent to be killed: its value is a folder for the data.
const parentMode = "DEVSERVER_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentMode); dir != "" {
		parent(dir)
	}
	os.Exit(m.Run())
}

// parent starts a Redis and a Postgres, prints their process ids and waits to be killed.
func parent(dir string) {
	ctx := context.Background()
	redis, err := devserver.StartRedis(ctx, devserver.RedisOptions{Dir: filepath.Join(dir, "redis"), AppendOnly: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	pg, err := devserver.StartPostgres(ctx, devserver.PostgresOptions{Dir: filepath.Join(dir, "postgres"), NoSync: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("pids %d %d\n", redis.PID(), pg.PID())
	select {}
}

func TestServersDieWithAKilledParent(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "sluice-orphan-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentMode+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "pids ") {
		t.Fatalf("the parent says %q (%v)", line, err)
	}
	pids := strings.Fields(line)[1:]
	for _, field := range pids {
		if pid, _ := strconv.Atoi(field); !processRuns(pid) {
			t.Fatalf("server %s does not run", field)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, field := range pids {
		pid, _ := strconv.Atoi(field)
		servertest.Eventually(t, 15*time.Second, "the end of server "+field, func() bool { return !processRuns(pid) })
	}
	startsAgain(t, filepath.Join(dir, "postgres"))
}

// startsAgain starts a Postgres on data whose server was ended by the death of its parent.
func startsAgain(t *testing.T, dir string) {
	t.Helper()
	pg, err := devserver.StartPostgres(t.Context(), devserver.PostgresOptions{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatalf("start on the data of a killed parent: %v", err)
	}
	t.Cleanup(pg.Kill)
}
