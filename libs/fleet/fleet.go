package fleet

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
	// reach it, asked at each beat; nil leaves it out.
	ID      string
	Address func() string
	// Owes says whether this gateway has let pass what the counters do not know
	// of yet; nil is never. It is asked each 50 ms, and must not block.
	Owes func() bool
	// Every is the time between beats; 0 is gateways.Every.
	Every      time.Duration
	Registerer prometheus.Registerer
	Log        *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Fleet is safe for concurrent use.
type Fleet struct {
	o     Options
	topic string
	set   *set
	// Of Run's goroutine: the last beat's number, and whether this gateway owes.
	seq  int64
	owes bool
}

// New returns a fleet that knows of this gateway alone; Run lets it learn.
func New(o Options) (*Fleet, error) {
	if o.ID == "" {
		return nil, errors.New("fleet: no id given")
	}
	if o.Every <= 0 {
		o.Every = gateways.Every
	}
	if o.Owes == nil {
		o.Owes = func() bool { return false }
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Fleet{o: o, topic: o.Stream.Topic(gateways.Topic), set: newSet(o.ID, o.Now)}
	if err := f.register(o.Registerer); err != nil {
		return nil, fmt.Errorf("fleet metrics: %w", err)
	}
	return f, nil
}

func (f *Fleet) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	return reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_fleet_live_gateways",
		Help: "Gateways that live, as this one knows; limits are shared out among them while the store is away.",
	}, func() float64 { return float64(f.Place().Live) }))
}

// RegisterMetrics registers the metrics, for the generated reference.
func RegisterMetrics(reg prometheus.Registerer) {
	if _, err := New(Options{ID: "reference", Registerer: reg}); err != nil {
		panic(err) // the generator's registry is its own
	}
}

// Place is where this gateway stands among those that live.
func (f *Fleet) Place() Place { return *f.set.place.Load() }

// Owed reports whether another gateway that lives has said that it owes.
func (f *Fleet) Owed() bool { return f.set.owed.Load() }

// Live lists the gateways that live, sorted, this one among them.
func (f *Fleet) Live() []string { return f.set.live() }

// Run beats and listens until ctx is cancelled, then says goodbye and returns
// nil. Kafka away, or the topic not there yet, leaves the set as it is.
func (f *Fleet) Run(ctx context.Context) error {
	started := f.o.Now().UTC()
	pause := backoff.Backoff{}
	for ctx.Err() == nil {
		if err := f.session(ctx, started); err != nil {
			f.o.Log.Warn("beats of gateways are not heard; the last known set holds", "live", f.Place().Live, "cause", err)
			if pause.Wait(ctx) != nil {
				break
			}
		}
	}
	return nil
}

// errUnheard ends a session whose client does not even hear its own beats: the
// topic may have been made anew, which the client does not follow.
var errUnheard = errors.New("nothing is heard, not even our own beats")

// session beats and listens with one client, until ctx ends or it hears nothing.
func (f *Fleet) session(ctx context.Context, started time.Time) error {
	client, err := kgo.NewClient(append(f.o.Stream.ClientOptions(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
			f.topic: {0: kgo.NewOffset().AfterMilli(f.o.Now().Add(-gateways.GoneAfter).UnixMilli())},
		}),
		kgo.FetchMaxWait(time.Second),
		kgo.ProducerLinger(0),
		// An old beat is worth nothing: it is better lost than late.
		kgo.RecordDeliveryTimeout(max(f.o.Every, time.Second)),
	)...)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	listening, stop := context.WithCancel(ctx)
	heard := make(chan struct{})
	go func() { // owned by session, which waits for it below
		defer close(heard)
		f.listen(listening, client)
	}()
	err = f.beat(ctx, client, started)
	stop()
	<-heard
	if ctx.Err() != nil {
		f.leave(ctx, client, started)
		return nil
	}
	return err
}

// lookEvery is how often it is asked whether this gateway owes.
const lookEvery = 50 * time.Millisecond

func (f *Fleet) beat(ctx context.Context, client *kgo.Client, started time.Time) error {
	ticker, look := time.NewTicker(f.o.Every), time.NewTicker(lookEvery)
	defer ticker.Stop()
	defer look.Stop()
	began := f.o.Now()
	for {
		client.Produce(ctx, f.record(started, false), nil) // heard, or not
		for told, due := f.owes, false; !due; due = due || f.owes != told {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
				due = true
			case <-look.C:
			}
			f.owes = f.o.Owes()
		}
		f.set.age()
		if f.set.silence(began) > gateways.GoneAfter*2 {
			return errUnheard
		}
	}
}

func (f *Fleet) listen(ctx context.Context, client *kgo.Client) {
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		fetches.EachRecord(func(r *kgo.Record) {
			var b gateways.Beat
			if err := json.Unmarshal(r.Value, &b); err != nil || b.ID == "" {
				return // of a later version, or of somebody else
			}
			f.set.apply(b)
		})
	}
}

// leaveWithin bounds the wait for a goodbye: others notice anyway.
const leaveWithin = time.Second

// leave says goodbye. A record that may have reached a broker cannot be taken
// back, so the client would wait for it longer than anybody likes: this does not.
func (f *Fleet) leave(ctx context.Context, client *kgo.Client, started time.Time) {
	done := make(chan error, 1)
	client.Produce(context.WithoutCancel(ctx), f.record(started, true), func(_ *kgo.Record, err error) { done <- err })
	timer := time.NewTimer(leaveWithin)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			f.o.Log.Debug("no goodbye to the other gateways", "cause", err)
		}
	case <-timer.C:
	}
}

func (f *Fleet) record(started time.Time, leaving bool) *kgo.Record {
	f.seq++
	b := gateways.Beat{ID: f.o.ID, Started: started, Seq: f.seq, Leaving: leaving, Owes: f.owes}
	if f.o.Address != nil {
		b.Address = f.o.Address()
	}
	value, _ := json.Marshal(b) // strings, numbers and a time of this century
	return &kgo.Record{Topic: f.topic, Key: []byte(f.o.ID), Value: value}
}
