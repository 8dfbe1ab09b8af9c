package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"
)

// warming asks one gateway for paths. It belongs to one goroutine.
type warming struct {
	base, host string
	header     http.Header
	rate       float64 // requests a second at most
	parallel   int
	maxErrors  int
	client     *http.Client
	now        func() time.Time
}

// progressEvery is the time between two lines of progress.
const progressEvery = 2 * time.Second

// report runs and tells: progress to stderr, the end to stdout.
func (w *warming) report(ctx context.Context, targets []warmTarget, stdout, stderr io.Writer) error {
	began := w.now()
	t := &warmTally{all: len(targets)}
	ended, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintln(stderr, t.line())
			case <-ended:
				return
			}
		}
	}()
	w.run(ctx, targets, t)
	close(ended)
	<-told
	t.print(stdout, w.now().Sub(began))
	return w.outcomeOf(ctx, t)
}

// run asks for every target once, in random order, each at a random instant of
// a slot of its own, 1 ÷ rate long: so the rate holds over any second, and
// nothing beats in time. It ends early when ctx does or too many failed; what is
// under way then is waited for.
func (w *warming) run(ctx context.Context, targets []warmTarget, t *warmTally) {
	pacing, stop := context.WithCancel(ctx)
	defer stop()
	order := rand.Perm(len(targets))
	slots := make(chan struct{}, w.parallel)
	gap := time.Duration(float64(time.Second) / w.rate)
	var under sync.WaitGroup
	defer under.Wait()
	slot := w.now()
	for _, i := range order {
		if !w.sleepUntil(pacing, slot.Add(rand.N(gap))) {
			return
		}
		select {
		case slots <- struct{}{}:
		case <-pacing.Done():
			return
		}
		under.Go(func() {
			defer func() { <-slots }()
			a := w.ask(ctx, targets[i])
			if ctx.Err() != nil {
				return // cut off: says nothing about the path
			}
			if t.add(targets[i], a) > w.maxErrors {
				stop()
			}
		})
		// What the limit of requests under way has delayed is not made up for.
		if slot = slot.Add(gap); slot.Before(w.now()) {
			slot = w.now()
		}
	}
}

func (w *warming) sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(at.Sub(w.now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (w *warming) ask(ctx context.Context, target warmTarget) warmAnswer {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+target.path, http.NoBody)
	if err != nil {
		return warmAnswer{warmFailed, err.Error()}
	}
	req.Header = w.header.Clone()
	req.Host = rest.FirstOf(target.host, w.host)
	res, err := w.client.Do(req)
	if err != nil {
		return warmAnswer{warmFailed, callError(err)}
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return warmAnswer{warmFailed, "read answer: " + callError(err)}
	}
	return judge(res)
}

// callError is the error without the URL, so that equal ones count together.
func callError(err error) string {
	var call *url.Error
	switch {
	case !errors.As(err, &call):
		return err.Error()
	case call.Timeout():
		return "no answer within --timeout"
	}
	return call.Err.Error()
}

// judge reads the gateway's part of Cache-Status (RFC 9211).
func judge(res *http.Response) warmAnswer {
	status, told := "", false
	for _, line := range res.Header.Values("Cache-Status") {
		if own, ok := strings.CutPrefix(line, "sluice; "); ok {
			status, told = own, true
		}
	}
	has := map[string]string{}
	for param := range strings.SplitSeq(status, "; ") {
		name, value, _ := strings.Cut(param, "=")
		has[name] = value
	}
	_, hit := has["hit"]
	_, stored := has["stored"]
	_, collapsed := has["collapsed"]
	switch {
	case res.StatusCode >= 400:
		return warmAnswer{warmFailed, res.Status}
	case has["detail"] == "stale-if-error":
		return warmAnswer{warmFailed, "the service failed; a stale answer stood in"}
	case hit:
		return warmAnswer{result: warmHit}
	case stored, collapsed:
		return warmAnswer{result: warmMiss}
	case !told:
		return warmAnswer{warmUnstored, "no cache on this route"}
	}
	if has["detail"] == "authorization" {
		return warmAnswer{warmUnstored, "authorization (" + identifiedRule + ")"}
	}
	return warmAnswer{warmUnstored, rest.FirstOf(has["detail"], has["fwd"], status)}
}

// outcomeOf makes the command's error of what came of a run.
func (w *warming) outcomeOf(ctx context.Context, t *warmTally) error {
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case t.counts[warmFailed] > w.maxErrors:
		return fmt.Errorf("%d paths failed, more than --max-errors %d", t.counts[warmFailed], w.maxErrors)
	case t.counts[warmFailed] > 0 && t.counts[warmFailed] == t.all:
		if answered := t.answered(); answered != "" {
			return fmt.Errorf("all %d paths failed: the gateway answered %s", t.all, answered)
		}
		return fmt.Errorf("all %d paths failed: --gateway or $%s says where the gateway is", t.all, envGateway)
	}
	return nil
}
