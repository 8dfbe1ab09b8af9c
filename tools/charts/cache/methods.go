package chart

import (
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

const (
	ttl       = time.Minute
	tolerated = time.Second
	cell      = 4 // pixels a side
)

// methods maps reads a second and load time to what libs/cache advises.
func methods(title string, budget time.Duration) []byte {
	p := newPlot(title,
		axis{name: "reads a second of the key, by one process", from: 0.1, to: 100_000, log: true,
			ticks: []tick{{0.1, "0.1"}, {1, "1"}, {10, "10"}, {100, "100"}, {1000, "1,000"}, {10_000, "10,000"}, {100_000, "100,000"}}},
		axis{name: "a load takes", from: 0.001, to: 60, log: true,
			ticks: []tick{{0.001, "1 ms"}, {0.01, "10 ms"}, {0.1, "0.1 s"}, {1, "1 s"}, {10, "10 s"}, {60, "60 s"}}})
	colour := map[cache.Method]string{cache.UseSWR: colours[0], cache.UseXFetch: colours[2], cache.UseLock: "#d0d4da"}
	for y := top; y < floor; y += cell {
		load := time.Duration(p.y.value(float64(floor-y-cell/2)/(floor-top)) * float64(time.Second))
		p.cells(y, func(share float64) string {
			return colour[cache.Advise(p.x.value(share), load, budget, ttl, 1).Method]
		})
	}
	for i, m := range []cache.Method{cache.UseLock, cache.UseXFetch, cache.UseSWR} {
		y := top + 14 + 18*i
		p.print(`<rect x="%d" y="%d" width="9" height="9" fill="%s"/><text x="%d" y="%d">%s</text>`, right+8, y-8, colour[m], right+21, y, m)
	}
	return p.svg()
}

// cells draws one row, cells of one colour as one.
func (p *plot) cells(y int, colourAt func(share float64) string) {
	begin, colour := left, ""
	for x := left; x <= right; x += cell {
		next := ""
		if x+cell <= right {
			next = colourAt(float64(x-left+cell/2) / (right - left))
		}
		if next == colour {
			continue
		}
		if colour != "" {
			p.print(`<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`, begin, y, x-begin, min(cell, floor-y), colour)
		}
		begin, colour = x, next
	}
}
