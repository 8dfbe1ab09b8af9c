package portal

import (
	"fmt"
	"strings"
	"time"
)

// The chart's own units; the page scales it.
const (
	chartWidth  = 640
	chartHeight = 160
	chartTop    = 16
)

// chart is how a period's use has grown, day by day.
type chart struct {
	Days []chartDay
	// Line are the points of the use so far, Limit the height of the limit; both
	// in the chart's units, from the top.
	Line  string
	Limit float64
	// HasLimit: the limit is drawn, because use comes anywhere near it.
	HasLimit                   bool
	First, Last                string
	Width, Height, Floor, Text int
}

// chartDay is one day: what was used on it, and in the period by its end.
type chartDay struct {
	Day         string
	Used, Total int64
}

// draw makes the chart of a counter's period, up to the day of now; nil where
// nothing was used.
func draw(sums []daySum, u use, zone *time.Location, now time.Time) *chart {
	byDay := map[string]int64{}
	for _, d := range sums {
		if d.Counter == u.Counter {
			byDay[d.Day] += d.Amount
		}
	}
	if len(byDay) == 0 {
		return nil
	}
	first, end := u.Period.Start.In(zone), u.Period.End.In(zone)
	c := &chart{First: day(first), Last: day(end.Add(-time.Nanosecond)), Width: chartWidth, Height: chartHeight + chartTop + 20, Floor: chartTop + chartHeight, Text: chartTop + chartHeight + 16}
	total, most, all := int64(0), int64(1), 0
	for d := first; d.Before(end); d = d.AddDate(0, 0, 1) {
		all++
		if d.After(now) {
			continue
		}
		name := day(d)
		total += byDay[name]
		most = max(most, total)
		c.Days = append(c.Days, chartDay{name, byDay[name], total})
	}
	c.scale(most, all, u.Limit)
	return c
}

// scale works out the line. The limit is drawn where use has come to a fifth of
// it; far above, it would press the line to the floor.
func (c *chart) scale(most int64, days int, limit *int64) {
	if limit != nil && *limit > 0 && most >= *limit/5 {
		c.HasLimit = true
		most = max(most, *limit)
		c.Limit = height(*limit, most)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "0,%d", c.Floor)
	for i, d := range c.Days {
		fmt.Fprintf(&b, " %.1f,%.1f", float64(i+1)/float64(days)*chartWidth, height(d.Total, most))
	}
	c.Line = b.String()
}

func height(n, most int64) float64 {
	return chartTop + chartHeight*(1-float64(max(0, n))/float64(most))
}
