//go:build integration

package devserver

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// A server one of whose ports another program has taken is started on others.
func TestStartsAnewWhereAPortIsTaken(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tries := 0
	redis, err := onPort(t.Context(), "redis", 0, "", func(port int) (*Redis, error) {
		tries++
		o := RedisOptions{Dir: t.TempDir(), Port: port, Cluster: true}
		if tries == 1 {
			o.Args = []string{"--cluster-port", strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)}
		}
		return StartRedis(t.Context(), o)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Kill()
	if tries != 2 {
		t.Errorf("started at try %d, want the second", tries)
	}
	if err := PingRedis(t.Context(), redis.Addr()); err != nil {
		t.Error(err)
	}
}

// reserveMode makes the test binary a process that says whether it gets the port that is its value.
const reserveMode = "DEVSERVER_TEST_RESERVE"

func TestReservedPortIsNobodyElses(t *testing.T) {
	t.Parallel()
	if port := os.Getenv(reserveMode); port != "" {
		n, _ := strconv.Atoi(port)
		got, err := ReservePort(n)
		t.Logf("reserved: %v %v", got, err)
		return
	}
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ReservePort(port); again || err != nil {
		t.Errorf("the same process gets port %d again (%v)", port, err)
	}
	ask := func(port int) string {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReservedPortIsNobodyElses$", "-test.v")
		cmd.Env = append(os.Environ(), reserveMode+"="+strconv.Itoa(port))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if out := ask(port); !strings.Contains(out, "reserved: false <nil>") {
		t.Errorf("another process gets port %d, which is reserved here:\n%s", port, out)
	}
	// Another one is given: the answer above is not what is always said.
	for other := 14000; ; other++ {
		if out := ask(other); strings.Contains(out, "reserved: true <nil>") {
			break
		} else if other == 14050 {
			t.Fatalf("another process gets no port at all:\n%s", out)
		}
	}
}
