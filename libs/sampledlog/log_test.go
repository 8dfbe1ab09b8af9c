package sampledlog

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// written returns a Log by a clock that the test moves, and what it has logged.
func written(now *time.Time) (*Log, *bytes.Buffer) {
	var out bytes.Buffer
	handler := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return New(slog.New(handler), func() time.Time { return *now }), &out
}

func TestOneLineASecondSaysHowManyWereLeftOut(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 31, 12, 0, 0, 0, time.UTC)
	l, out := written(&now)
	for i := range 5 {
		l.Say(slog.LevelWarn, "it rains", "drop", i)
		now = now.Add(250 * time.Millisecond)
	}
	l.Say(slog.LevelError, "it snows")
	now = now.Add(time.Second)
	l.Say(slog.LevelError, "it hails")
	want := "level=WARN msg=\"it rains\" drop=0 omitted=0\n" +
		"level=WARN msg=\"it rains\" drop=4 omitted=3\n" +
		"level=ERROR msg=\"it hails\" omitted=1\n"
	if out.String() != want {
		t.Errorf("logged\n%swant\n%s", out, want)
	}
}

func TestOfAllAtOnceOneIsLogged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 31, 12, 0, 0, 0, time.UTC)
	l, out := written(&now)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				l.Say(slog.LevelWarn, "it rains")
			}
		})
	}
	all.Wait()
	now = now.Add(time.Second)
	l.Say(slog.LevelWarn, "it rained")
	if lines := strings.Count(out.String(), "\n"); lines != 2 || !strings.Contains(out.String(), "omitted=799\n") {
		t.Errorf("logged\n%s", out)
	}
}
