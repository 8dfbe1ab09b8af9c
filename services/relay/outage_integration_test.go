//go:build integration

package relay

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/service"
	"github.com/sluice-platform/sluice/libs/stream"
)

// childEnv makes this test binary a relay: a process that a test may stop.
const childEnv = "SLUICE_RELAY_TEST_CHILD"

type child struct {
	DSN, Slot string
	Stream    stream.Config
}

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		runChild(spec)
		return
	}
	os.Exit(m.Run())
}

func runChild(spec string) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var c child
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		log.Error("child", "error", err)
		os.Exit(2)
	}
	cfg := DefaultConfig()
	cfg.Slot = c.Slot
	s, err := New(cfg, Deps{DatabaseURL: service.Secret(c.DSN), Stream: c.Stream, Topics: registry, Log: log})
	if err != nil {
		log.Error("child", "error", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := s.Run(ctx); err != nil {
		log.Error("child", "error", err)
		os.Exit(1)
	}
}

// process runs a relay in a process of its own.
func (b *bench) process() *os.Process {
	b.t.Helper()
	spec, err := json.Marshal(child{DSN: b.dsn, Slot: b.slot, Stream: b.stream})
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
	cmd.Stderr = b.t.Output()
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, so always an error
	})
	return cmd.Process
}

func TestStandbyTakesOverFromARelayThatIsStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stalled := b.process()
	b.eventually("the process to take the slot", func() (taken bool) {
		err := b.conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1 AND active)`, b.slot).Scan(&taken)
		if err != nil {
			t.Fatal(err)
		}
		return taken
	})
	standby := b.relay()
	b.put("a", 1)
	table := b.table()
	b.equal("with the process", table)
	if err := stalled.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		b.put("a", n) // some wait in the sockets of the stopped process
	}
	b.remove("a")
	b.put("b", 1)
	b.eventually("the standby to take over", standby.active)
	b.equal("after the take-over", table)
	if err := stalled.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	b.put("b", 2)
	b.equal("with the process awake", table)
	b.equal("read from the start", b.table())
	if !standby.active() {
		t.Fatal("the relay that woke up took the slot")
	}
}

func TestKilledRelayLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	table := b.table()
	for round := range 3 {
		relay := b.process()
		for n := range 50 {
			b.put("k"+string(rune('a'+n%7)), round*100+n)
			if n == 30 {
				b.remove("ka")
			}
		}
		if err := relay.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	b.streaming(b.relay())
	b.equal("after three kills", table)
	b.eventually("the outbox to be emptied", func() bool { return b.outboxLen() == 0 })
}

func TestKafkaKilledAndBack(t *testing.T) {
	t.Parallel()
	kafka := servertest.StartKafka(t)
	b := newBenchOn(t, servertest.Postgres(t), kafka.Brokers(), uniqueSlot(t)+".")
	relay := b.relay()
	b.streaming(relay)
	b.put("a", 1)
	table := b.table()
	b.equal("before", table)
	kafka.Kill()
	b.put("a", 2)
	b.remove("a")
	b.put("b", 3)
	b.eventually("the relay to say what is missing", func() bool {
		err := relay.Ready()
		return err != nil && strings.Contains(err.Error(), "kafka")
	})
	if b.outboxLen() == 0 {
		t.Fatal("outbox rows were deleted without an acknowledgement")
	}
	if err := kafka.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.equal("after Kafka came back", table)
	b.eventually("the outbox to be emptied", func() bool { return b.outboxLen() == 0 })
	b.eventually("readiness", func() bool { return relay.Ready() == nil })
}

func TestPostgresKilledAndBack(t *testing.T) {
	t.Parallel()
	postgres := servertest.StartPostgres(t)
	brokers, prefix := servertest.Kafka(t)
	b := newBenchOn(t, postgres.URL(), brokers, prefix)
	relay := b.relay()
	b.streaming(relay)
	b.put("a", 1)
	table := b.table()
	b.equal("before", table)
	postgres.Kill()
	b.eventually("the relay to say what is missing", func() bool {
		err := relay.Ready()
		return err != nil && !relay.active()
	})
	late := b.table()
	b.eventually("a gateway that starts meanwhile to be ready", func() bool { return late.Ready() == nil && late.Len() == 1 })
	if err := postgres.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.conn = connect(t, b.dsn)
	b.put("a", 2)
	b.equal("after Postgres came back", table)
	if e, _ := table.Get("a"); e.Generation != 1 {
		t.Fatalf("generation %d after a mere restart", e.Generation)
	}
}

// uniqueSlot is a name for a slot on a shared Postgres when Kafka is the test's own.
func uniqueSlot(t *testing.T) string {
	t.Helper()
	_, prefix := servertest.Kafka(t)
	return strings.TrimSuffix(prefix, ".")
}
