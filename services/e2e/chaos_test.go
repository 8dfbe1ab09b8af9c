//go:build integration

package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// In the middle of requests and rule writes, each process and Kafka are killed
// with -9, a relay is paused while the standby takes over, the replication
// slot is dropped, rules.v1 is emptied and deleted. Afterwards every gateway's
// index equals Postgres, and every answered decision is a document, a dead
// letter or a counted drop.
func TestChaos(t *testing.T) {
	s := newPrivateStack(t)
	s.process("rest", "controlplane", nil).start().awaitReady()
	relays := []*process{s.process("relay-a", "relay", nil).start(), s.process("relay-b", "relay", nil).start()}
	s.settle = s.process("settle", "indexer,keeper", nil).start()
	s.service()
	s.mustREST("POST", "/v1/rules", nil, quota("load", "/svc/load", 300), http.StatusCreated)
	for _, id := range []string{"gw-1", "gw-2"} {
		s.gateway(id).start().awaitReady()
	}
	s.awaitEqualAll()

	load := s.startLoad(2)
	stopWriting, written := make(chan struct{}), make(chan int, 1)
	go func() { written <- s.writeRules(stopWriting, func() { pause(30 * time.Millisecond) }) }()

	t.Run("faults", func(t *testing.T) { s.faults(t, relays, load) })

	servertest.Eventually(t, 2*time.Minute, "5,000 answered requests", func() bool { return load.sent.Load() >= 5000 })
	load.finish()
	close(stopWriting)
	t.Logf("%d answered decisions, %d rule writes", len(load.answered), <-written)
	if len(load.odd) > 0 || len(load.twice) > 0 {
		t.Errorf("odd answers %v; decision ids missing or seen twice: %v", load.odd, load.twice)
	}
	s.awaitEqualAll()
	s.awaitEveryDecision(load)
}

// faults strikes one after the other, each in the middle of traffic, and waits
// until the house has recovered from one before the next.
func (s *privateStack) faults(t *testing.T, relays []*process, l *load) {
	more := func(n int64) {
		t.Helper()
		goal := l.sent.Load() + n
		servertest.Eventually(t, time.Minute, "traffic to go on", func() bool { return l.sent.Load() >= goal })
	}
	step := func(name string, f func(t *testing.T)) {
		more(200)
		t.Run(name, f)
		more(200)
		s.awaitEqualAll()
	}
	step("kill relay", func(t *testing.T) {
		active := s.active(relays)
		active.kill()
		s.active(relays)
		active.start()
	})
	step("kill gateway", func(t *testing.T) {
		s.gates[0].kill()
		s.gates[0].start().awaitReady()
	})
	step("kill indexer and keeper", func(t *testing.T) {
		s.settle.kill()
		s.settle.start()
	})
	step("kill kafka", func(t *testing.T) {
		s.kafka.Kill()
		restart(t, s.kafka)
	})
	step("kill elasticsearch", func(t *testing.T) {
		s.index.Kill()
		restart(t, s.index)
	})
	step("pause relay", func(t *testing.T) {
		asleep := s.active(relays)
		asleep.signal(syscall.SIGSTOP)
		s.active(without(relays, asleep))
		more(100)
		asleep.signal(syscall.SIGCONT)
	})
	step("drop slot", s.dropSlot)
	step("empty rules.v1", s.emptyRules)
	step("delete rules.v1", s.deleteRules)
}

// active waits for the relay that holds the slot.
func (s *stack) active(relays []*process) *process {
	s.t.Helper()
	var found *process
	servertest.Eventually(s.t, 40*time.Second, "a relay to be active", func() bool {
		for _, r := range relays {
			if r.running() && r.metric("sluice_relay_active") == 1 {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

func without(all []*process, one *process) (rest []*process) {
	for _, p := range all {
		if p != one {
			rest = append(rest, p)
		}
	}
	return rest
}

// dropSlot takes the slot from whoever holds it, drops it, and deletes a rule
// in the gap, which no WAL tells of.
func (s *privateStack) dropSlot(t *testing.T) {
	s.database(func(ctx context.Context, db *pgx.Conn) error {
		const drop = `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1 AND NOT active`
		servertest.Eventually(t, 20*time.Second, "the slot to be dropped", func() bool {
			_, _ = db.Exec(ctx, `SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1`, s.slot)
			tag, err := db.Exec(ctx, drop, s.slot)
			return err == nil && tag.RowsAffected() == 1
		})
		return nil
	})
}

func (s *privateStack) admin(t *testing.T, f func(ctx context.Context, admin *kadm.Client) error) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := f(ctx, kadm.NewClient(client)); err != nil {
		t.Fatal(err)
	}
}

// emptyRules deletes all records of the topic; a gateway that starts after
// that must still come to hold every rule.
func (s *privateStack) emptyRules(t *testing.T) {
	s.admin(t, func(ctx context.Context, admin *kadm.Client) error {
		// Kafka deletes records of no topic that is compacted only.
		if err := setCleanup(ctx, admin, "compact,delete"); err != nil {
			return err
		}
		ends, err := admin.ListEndOffsets(ctx, "rules.v1")
		if err != nil {
			return err
		}
		answers, err := admin.DeleteRecords(ctx, ends.Offsets())
		if err != nil {
			return err
		}
		return errors.Join(answers.Error(), setCleanup(ctx, admin, "compact"))
	})
	s.gates[1].kill()
	s.gates[1].start().awaitReady()
}

func setCleanup(ctx context.Context, admin *kadm.Client, policy string) error {
	answers, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "cleanup.policy", Value: &policy}}, "rules.v1")
	if err != nil {
		return err
	}
	for _, answer := range answers {
		err = errors.Join(err, answer.Err)
	}
	return err
}

func (s *privateStack) deleteRules(t *testing.T) {
	s.admin(t, func(ctx context.Context, admin *kadm.Client) error {
		answers, err := admin.DeleteTopics(ctx, "rules.v1")
		if err != nil {
			return err
		}
		return answers.Error()
	})
	s.gates[0].kill()
	s.gates[0].start().awaitReady()
}

// pause spaces writes out; it is no wait for a condition.
func pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}
