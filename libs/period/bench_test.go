package period_test

import (
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/period"
)

var sink period.Bounds

func BenchmarkAt(b *testing.B) {
	paris := "Europe/Paris"
	changed, err := period.Month().Then(calendar(b, period.Spec{Unit: "month", Zone: paris}), time.Unix(1784816000, 0))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []period.Calendar{
		period.Month(),
		calendar(b, period.Spec{Unit: "hour", Zone: paris}),
		calendar(b, period.Spec{Unit: "day", Zone: paris}),
		calendar(b, period.Spec{Unit: "week", Zone: paris}),
		calendar(b, period.Spec{Unit: "month", Zone: paris, AnchorDay: 31}),
		calendar(b, period.Spec{Unit: "year", Zone: paris}),
		calendar(b, period.Spec{Unit: "never"}),
		changed,
	} {
		b.Run(c.String(), func(b *testing.B) {
			b.ReportAllocs()
			at := time.Unix(1784816000, 0)
			for b.Loop() {
				sink = c.At(at)
			}
		})
	}
}

func TestAtAllocatesTheIDOnly(t *testing.T) {
	at := time.Unix(1784816000, 0)
	for _, unit := range []string{"hour", "day", "week", "month", "year"} {
		c := calendar(t, period.Spec{Unit: unit, Zone: "Australia/Lord_Howe"})
		if n := testing.AllocsPerRun(100, func() { sink = c.At(at) }); n > 1 {
			t.Errorf("%s: %v allocations", c, n)
		}
	}
}
