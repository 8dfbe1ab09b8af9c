package period_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-platform/sluice/libs/period"
)

func TestParseReadsWhatNameWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawnCalendar(t, drawnUnit.Draw(t, "unit")).At(drawnInstant(t, "at"))
		if b.Start.Year() < 1 || b.Start.Year() > 9998 {
			return
		}
		got, err := period.Parse(b.Name())
		if err != nil {
			t.Fatalf("%s: %v", b.Name(), err)
		}
		if got.Calendar != b.Calendar || got.ID != b.ID || !got.End.Equal(b.End) || !got.Start.Equal(b.Start) {
			t.Fatalf("%s: got %+v, want %+v", b.Name(), got, b)
		}
	})
}

func TestParseOfWhatIsNoPeriod(t *testing.T) {
	t.Parallel()
	if b, err := period.Parse("never:all"); err != nil || !b.Endless() {
		t.Errorf("never:all: %+v, %v", b, err)
	}
	for _, name := range []string{"", "month", "month:", "month:20260", "month:x", "age:202607", "month+x:202607", "week+15:20260720", "day@Nowhere/Town:20260720", "day:2026072312304599"} {
		if b, err := period.Parse(name); err == nil {
			t.Errorf("%q: %+v, want an error", name, b)
		}
	}
}
