package chart

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
)

// seconds is how much time a picture shows, a column a second.
const seconds = 60

// column is what came and what passed in one second.
type column struct{ passed, denied int }

// demand is how many requests come in second s: a burst at each side of the
// 20 s edge, silence, then twice what any of the pictures' limits refills.
func demand(s int) int {
	switch {
	case s == 18 || s == 21:
		return 20
	case s >= 32:
		return 2
	}
	return 0
}

// drive sends the demand through one counter, evenly spread in each second.
func drive(counter limit.Counter) ([seconds]column, error) {
	var columns [seconds]column
	// A whole number of windows since the epoch, so that edges fall on columns.
	start := time.Unix(1_800_000_000, 0).UTC()
	now := start
	model := limit.NewModel(func() time.Time { return now })
	for s := range seconds {
		for i := range demand(s) {
			now = start.Add(time.Duration(s)*time.Second + time.Duration(i)*time.Second/time.Duration(demand(s)))
			d, err := model.Decide(context.Background(), []limit.Counter{counter})
			if err != nil {
				return columns, fmt.Errorf("drive %s: %w", counter.Algorithm, err)
			}
			if d.Allowed {
				columns[s].passed++
			} else {
				columns[s].denied++
			}
		}
	}
	return columns, nil
}
