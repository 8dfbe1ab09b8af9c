//go:build integration

package sluice

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// devBinary builds the program once for all tests of this package.
var devBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sluice-dev-test-")
	if err != nil {
		return "", err
	}
	leftovers = append(leftovers, dir)
	binary := filepath.Join(dir, "sluice")
	out, err := exec.Command("go", "build", "-o", binary, "../cmd/sluice").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return binary, nil
})

// devRun is one sluice dev process.
type devRun struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    string // file with stdout and stderr
	offset int
	gone   chan struct{}
}

func startDev(t *testing.T, data string, offset int, more ...string) *devRun {
	t.Helper()
	binary, err := devBinary()
	if err != nil {
		t.Fatalf("build sluice: %v", err)
	}
	r := &devRun{t: t, out: filepath.Join(t.TempDir(), "out"), offset: offset, gone: make(chan struct{})}
	out, err := os.Create(r.out)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r.cmd = exec.Command(binary, append([]string{"dev", "--data", data, "--port-offset", strconv.Itoa(offset)}, more...)...)
	r.cmd.Stdout, r.cmd.Stderr = out, out
	// The tests' own variables are no configuration of this process.
	r.cmd.Env = withoutSluice(os.Environ())
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.gone)
		_ = r.cmd.Wait() // the exit code is read from ProcessState
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it may have ended long ago
		<-r.gone
		if t.Failed() {
			t.Logf("output:\n%s", r.output())
		}
	})
	return r
}

func withoutSluice(environ []string) []string {
	var kept []string
	for _, e := range environ {
		if !strings.HasPrefix(e, "SLUICE_") || strings.HasPrefix(e, "SLUICE_CACHE_DIR=") {
			kept = append(kept, e)
		}
	}
	return kept
}

func (r *devRun) output() string {
	text, err := os.ReadFile(r.out)
	if err != nil {
		r.t.Error(err)
	}
	return string(text)
}

func (r *devRun) ended() bool {
	select {
	case <-r.gone:
		return true
	default:
		return false
	}
}

func (r *devRun) awaitReady() *devRun {
	r.t.Helper()
	servertest.Eventually(r.t, time.Minute, "sluice dev to be ready", func() bool {
		if r.ended() {
			r.t.Fatalf("sluice dev ended:\n%s", r.output())
		}
		return strings.Contains(r.output(), "\nready after ")
	})
	return r
}

// awaitEnd returns the exit code.
func (r *devRun) awaitEnd() int {
	r.t.Helper()
	select {
	case <-r.gone:
	case <-time.After(40 * time.Second):
		r.t.Fatalf("sluice dev did not end:\n%s", r.output())
	}
	return r.cmd.ProcessState.ExitCode()
}

// addr is where something of this process listens, by its usual port.
func (r *devRun) addr(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port+r.offset))
}

// do sends a request to one of the process's ports and returns the answer's
// code, headers and body; code 0 when there is none.
func (r *devRun) do(method string, port int, path, body string, headers ...string) (int, http.Header, string) {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://"+r.addr(port)+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Close = true // no idle connection outlives the test
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	return resp.StatusCode, resp.Header, string(text)
}

// children are the process ids below this process, servers among them.
func (r *devRun) children() []int {
	r.t.Helper()
	parents := map[int]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		r.t.Fatalf("read /proc: %v", err)
	}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parents[pid], _ = strconv.Atoi(string(fields[1]))
	}
	var below []int
	for pid := range parents {
		for at := parents[pid]; at > 1; at = parents[at] {
			if at == r.cmd.Process.Pid {
				below = append(below, pid)
				break
			}
		}
	}
	return below
}

// awaitGone waits until none of the processes is alive.
func awaitGone(t *testing.T, pids []int) {
	t.Helper()
	if len(pids) < 2 {
		t.Fatalf("only %v children: Postgres and Redis are missing", pids)
	}
	servertest.Eventually(t, 20*time.Second, "the children to be gone", func() bool {
		for _, pid := range pids {
			raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			if err == nil && !bytes.Contains(raw, []byte(") Z ")) {
				return false
			}
		}
		return true
	})
}

func (r *devRun) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

// freeOffset is a port offset at which nothing listens on any of the ports, and that no other test gets.
func freeOffset(t *testing.T) int {
	t.Helper()
next:
	for range 200 {
		offset := 1000 + rand.IntN(10000)
		for _, port := range []int{8080, 8081, 8088, 8089, 9000, 15432, 16379, 19092} {
			if free, err := devserver.ReservePort(port + offset); err != nil {
				t.Fatal(err)
			} else if !free {
				continue next
			}
		}
		return offset
	}
	t.Fatal("no port offset is free")
	return 0
}
