//go:build integration

package stream

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// lifeline is the connections of a client, which all end at its death.
type lifeline struct {
	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

var errDead = errors.New("its process was killed")

func (l *lifeline) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		_ = c.Close()
		return nil, errDead
	}
	l.conns = append(l.conns, c)
	return c, nil
}

func (l *lifeline) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for _, c := range l.conns {
		_ = c.Close()
	}
}

// What a member that was killed had, the next one has when its session is over,
// not only after rebalanceTimeout or the library's 45 s; with room for a slow machine.
func TestPartitionsOfAKilledMemberAreTaken(t *testing.T) {
	t.Parallel()
	brokers, prefix := servertest.Kafka(t)
	f := newFlow(t, brokers, prefix)
	f.produce(0, 100)
	g, err := NewGroup(f.cfg, GroupOptions{Group: flowGroup, Topic: flowTopic, Handle: (&reader{}).handle})
	if err != nil {
		t.Fatal(err)
	}
	life := new(lifeline)
	killed, err := kgo.NewClient(append(g.options(), kgo.Dialer(life.dial))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(killed.CloseAllowingRebalance)
	t.Cleanup(life.cut)
	seen := 0
	eventually(t, "the first member to have all partitions", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		seen += killed.PollFetches(ctx).NumRecords()
		killed.AllowRebalance()
		return seen == 100
	})
	life.cut()
	_, next, _ := f.join(plain)
	servertest.Eventually(t, sessionTimeout+15*time.Second, "the next member to have its partitions", func() bool {
		return next.holds() == partitions && next.count() == 100
	})
}
