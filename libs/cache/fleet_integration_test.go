//go:build integration

package cache_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/cache"
	"github.com/sluice-platform/sluice/libs/servertest"
)

// fleetEnv makes the test binary one process of a fleet: its value is a member in JSON.
const fleetEnv = "SLUICE_CACHE_TEST_MEMBER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(fleetEnv); spec != "" {
		if err := member([]byte(spec)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fleetMember is what one process does: once its standard input ends, so many readers read one cold key.
type fleetMember struct {
	Addr, Prefix string
	Readers      int
	Load, Lease  time.Duration
	TTL          time.Duration // 0 is a minute
}

// loadsKey counts the loads of all processes.
func (f fleetMember) loadsKey() string { return f.Prefix + "loads" }

func (f fleetMember) options(c redis.UniversalClient) options {
	return options{
		Family: "fleet", Prefix: f.Prefix, Redis: c, TTL: cmp.Or(f.TTL, time.Minute), Lease: f.Lease, RedisTimeout: 5 * time.Second,
		Load: func(ctx context.Context, _ string) (cache.Loaded[string], error) {
			n, err := c.Incr(ctx, f.loadsKey()).Result()
			if err != nil {
				return cache.Loaded[string]{}, err
			}
			select {
			case <-time.After(f.Load):
				return cache.Loaded[string]{Value: fmt.Sprint("load ", n)}, nil
			case <-ctx.Done():
				return cache.Loaded[string]{}, ctx.Err()
			}
		},
	}
}

func member(spec []byte) error {
	var f fleetMember
	if err := json.Unmarshal(spec, &f); err != nil {
		return err
	}
	o := &redis.UniversalOptions{Addrs: []string{f.Addr}}
	cache.ConfigureRedis(o, 5*time.Second)
	client := redis.NewUniversalClient(o)
	defer client.Close()
	c, err := cache.New(f.options(client))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = c.Run(ctx) }()
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	values := make([]string, f.Readers)
	errs := make([]error, f.Readers)
	readers(f.Readers, func(i int) { values[i], errs[i] = c.Get(ctx, "shop window") })
	for i := range values {
		if errs[i] != nil {
			return fmt.Errorf("reader %d: %w", i, errs[i])
		}
		if values[i] != values[0] {
			return fmt.Errorf("two values: %q, %q", values[0], values[i])
		}
	}
	fmt.Println(values[0])
	return nil
}

// process is a running member.
type process struct {
	cmd   *exec.Cmd
	start io.Closer
	out   *bufio.Reader
	once  sync.Once
}

func spawn(t testing.TB, f fleetMember) *process {
	t.Helper()
	spec, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fleetEnv+"="+string(spec))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, start: stdin, out: bufio.NewReader(stdout)}
	t.Cleanup(p.kill)
	if line := p.line(t); line != "ready\n" {
		t.Fatalf("a process says %q", line)
	}
	return p
}

func (p *process) line(t testing.TB) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("a process says nothing: %v", err)
	}
	return line
}

func (p *process) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
}

// fleet runs processes × readers on one cold key and returns the number of loads.
func fleet(t testing.TB, processes int, f fleetMember) int {
	t.Helper()
	var members []*process
	for range processes {
		members = append(members, spawn(t, f))
	}
	for _, m := range members {
		if err := m.start.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range members {
		if line := m.line(t); line != "load 1\n" {
			t.Errorf("process %d got %q", i, line)
		}
	}
	n, err := client(t, f.Addr).Get(t.Context(), f.loadsKey()).Int()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOneLoadInAFleet(t *testing.T) {
	addr, prefix := servertest.Redis(t)
	f := fleetMember{Addr: addr, Prefix: prefix, Readers: 100, Load: 900 * time.Millisecond}
	if n := fleet(t, 6, f); n != 1 {
		t.Errorf("%d loads", n)
	}
}

// The value has expired before those who wait for it wake: they get it all the same, and none of them loads.
func TestWaitersGetAValueThatHasExpired(t *testing.T) {
	t.Parallel()
	addr, prefix := servertest.Redis(t)
	f := fleetMember{Addr: addr, Prefix: prefix, Readers: 50, Load: 900 * time.Millisecond, TTL: time.Millisecond}
	if n := fleet(t, 4, f); n != 1 {
		t.Errorf("%d loads", n)
	}
}

// The load takes longer than the lease, which the living leader renews.
func TestLoadLongerThanTheLease(t *testing.T) {
	t.Parallel()
	addr, prefix := servertest.Redis(t)
	f := fleetMember{Addr: addr, Prefix: prefix, Readers: 10, Load: 5 * time.Second, Lease: 3 * time.Second}
	if n := fleet(t, 3, f); n != 1 {
		t.Errorf("%d loads", n)
	}
}

// The leader dies by kill -9: the next one leads within the lease, and it is one.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	addr, prefix := servertest.Redis(t)
	const lease = 2 * time.Second
	f := fleetMember{Addr: addr, Prefix: prefix, Readers: 20, Load: time.Hour, Lease: lease}
	rdb := client(t, addr)
	leader := spawn(t, f)
	if err := leader.start.Close(); err != nil {
		t.Fatal(err)
	}
	loads := func() int { n, _ := rdb.Get(t.Context(), f.loadsKey()).Int(); return n }
	eventually(t, "the load", func() bool { return loads() == 1 })
	f.Load = 100 * time.Millisecond
	others := []*process{spawn(t, f), spawn(t, f), spawn(t, f)}
	for _, o := range others {
		if err := o.start.Close(); err != nil {
			t.Fatal(err)
		}
	}
	killed := time.Now()
	leader.kill()
	eventually(t, "the next leader", func() bool { return loads() == 2 })
	if took := time.Since(killed); took > lease+time.Second {
		t.Errorf("the next leader came after %s", took)
	}
	for _, o := range others {
		if line := o.line(t); line != "load 2\n" {
			t.Errorf("got %q", line)
		}
	}
	if n := loads(); n != 2 {
		t.Errorf("%d loads, want the dead one's and one", n)
	}
}
