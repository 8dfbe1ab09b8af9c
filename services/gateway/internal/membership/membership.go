package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-platform/sluice/libs/backoff"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/gateways"
)

// Options of New; ID and Stream are required.
type Options struct {
	Stream stream.Config
	// ID is this gateway's, unique in the deployment; Address where its clients
	// reach it, asked at each heartbeat; nil leaves it out.
	ID      string
	Address func() string
	// Every is the time between heartbeats; 0 is gateways.Every.
	Every      time.Duration
	Registerer prometheus.Registerer
	Log        *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Membership is who lives. It is safe for concurrent use.
type Membership struct {
	o     Options
	topic string
	set   *set
	seq   int64 // the last heartbeat's number; Run's goroutine owns it
}

// New returns a Membership that knows of this gateway alone; Run lets it learn.
func New(o Options) (*Membership, error) {
	if o.ID == "" {
		return nil, errors.New("membership: no id given")
	}
	if o.Every <= 0 {
		o.Every = gateways.Every
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Membership{o: o, topic: o.Stream.Topic(gateways.Topic), set: newSet(o.ID, o.Now)}
	if err := m.register(o.Registerer); err != nil {
		return nil, fmt.Errorf("membership metrics: %w", err)
	}
	return m, nil
}

func (m *Membership) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	return reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_membership_live_gateways",
		Help: "Gateways that live, as this one knows; limits are shared out among them while the store is away.",
	}, func() float64 { return float64(m.Position().Live) }))
}

// RegisterMetrics registers the metrics, for the generated reference.
func RegisterMetrics(reg prometheus.Registerer) {
	if _, err := New(Options{ID: "reference", Registerer: reg}); err != nil {
		panic(err) // the generator's registry is its own
	}
}

// Position is where this gateway stands among those that live.
func (m *Membership) Position() Position { return *m.set.position.Load() }

// Run sends heartbeats and listens until ctx is cancelled, then says goodbye and returns
// nil. Kafka away, or the topic not there yet, leaves the set as it is.
func (m *Membership) Run(ctx context.Context) error {
	started := m.o.Now().UTC()
	pause := backoff.Backoff{}
	for ctx.Err() == nil {
		if err := m.session(ctx, started); err != nil {
			m.o.Log.Warn("heartbeats of gateways are not heard; the last known members hold", "live", m.Position().Live, "cause", err)
			if pause.Wait(ctx) != nil {
				break
			}
		}
	}
	return nil
}

// errUnheard ends a session whose client does not even hear its own heartbeats: the
// topic may have been made anew, which the client does not follow.
var errUnheard = errors.New("nothing is heard, not even our own heartbeats")

// session sends heartbeats and listens with one client, until ctx ends or it hears nothing.
func (m *Membership) session(ctx context.Context, started time.Time) error {
	client, err := kgo.NewClient(append(m.o.Stream.ClientOptions(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
			m.topic: {0: kgo.NewOffset().AfterMilli(m.o.Now().Add(-gateways.GoneAfter).UnixMilli())},
		}),
		kgo.FetchMaxWait(time.Second),
		kgo.ProducerLinger(0),
		// An old heartbeat is worth nothing: it is better lost than late.
		kgo.RecordDeliveryTimeout(max(m.o.Every, time.Second)),
	)...)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	listening, stop := context.WithCancel(ctx)
	heard := make(chan struct{})
	go func() { // owned by session, which waits for it below
		defer close(heard)
		m.listen(listening, client)
	}()
	err = m.beat(ctx, client, started)
	stop()
	<-heard
	if ctx.Err() != nil {
		m.leave(ctx, client, started)
		return nil
	}
	return err
}

func (m *Membership) beat(ctx context.Context, client *kgo.Client, started time.Time) error {
	ticker := time.NewTicker(m.o.Every)
	defer ticker.Stop()
	began := m.o.Now()
	for {
		client.Produce(ctx, m.record(started, false), nil) // heard, or not
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		m.set.age()
		if m.set.silence(began) > gateways.GoneAfter*2 {
			return errUnheard
		}
	}
}

func (m *Membership) listen(ctx context.Context, client *kgo.Client) {
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		fetches.EachRecord(func(r *kgo.Record) {
			var b gateways.Beat
			if err := json.Unmarshal(r.Value, &b); err != nil || b.ID == "" {
				return // of a later version, or of somebody else
			}
			m.set.apply(b)
		})
	}
}

// leaveWithin bounds the wait for a goodbye: others notice anyway.
const leaveWithin = time.Second

// leave says goodbye. A record that may have reached a broker cannot be taken
// back, so the client would wait for it longer than anybody likes: this does not.
func (m *Membership) leave(ctx context.Context, client *kgo.Client, started time.Time) {
	done := make(chan error, 1)
	client.Produce(context.WithoutCancel(ctx), m.record(started, true), func(_ *kgo.Record, err error) { done <- err })
	timer := time.NewTimer(leaveWithin)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			m.o.Log.Debug("no goodbye to the other gateways", "cause", err)
		}
	case <-timer.C:
	}
}

func (m *Membership) record(started time.Time, leaving bool) *kgo.Record {
	m.seq++
	b := gateways.Beat{ID: m.o.ID, Started: started, Seq: m.seq, Leaving: leaving}
	if m.o.Address != nil {
		b.Address = m.o.Address()
	}
	value, _ := json.Marshal(b) // strings, numbers and a time of this century
	return &kgo.Record{Topic: m.topic, Key: []byte(m.o.ID), Value: value}
}
