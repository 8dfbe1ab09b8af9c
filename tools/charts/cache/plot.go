package chart

import (
	"fmt"
	"math"
	"strings"
)

// Geometry of a picture, in pixels.
const (
	width, height = 700, 260
	left, right   = 56, width - 160 // of the plot; labels of lines are right of it
	top, floor    = 34, height - 44
	grey          = "#5b6470"
)

// colours of lines and areas, in the order in which they are drawn.
var colours = []string{"#2a9d6f", "#d1495b", "#30638e", "#edae49"}

// axis maps values to pixels.
type axis struct {
	name     string
	from, to float64
	log      bool
	ticks    []tick
}

type tick struct {
	at   float64
	name string
}

// share is where v lies between the ends, 0 to 1 within them.
func (a axis) share(v float64) float64 {
	if a.log {
		return math.Log(v/a.from) / math.Log(a.to/a.from)
	}
	return (v - a.from) / (a.to - a.from)
}

// value is the opposite of share.
func (a axis) value(share float64) float64 {
	if a.log {
		return a.from * math.Pow(a.to/a.from, share)
	}
	return a.from + share*(a.to-a.from)
}

type point struct{ x, y float64 }

// plot is a picture that is being drawn.
type plot struct {
	b    strings.Builder
	x, y axis
}

func newPlot(title string, x, y axis) *plot {
	p := &plot{x: x, y: y}
	p.print(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11" fill="%s">`, width, height, grey)
	p.print(`<rect width="%d" height="%d" fill="#ffffff"/>`, width, height)
	p.print(`<text x="%d" y="16">%s</text>`, left, title)
	return p
}

func (p *plot) print(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

func (p *plot) px(v float64) float64 { return left + p.x.share(v)*(right-left) }
func (p *plot) py(v float64) float64 { return floor - p.y.share(v)*(floor-top) }

// line draws points, named at its last one; below is how far under the line's end the name stands, in pixels.
func (p *plot) line(colour, name string, below float64, points []point) {
	var at []string
	for _, q := range points {
		at = append(at, fmt.Sprintf("%.1f,%.1f", p.px(q.x), p.py(q.y)))
	}
	p.print(`<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`, strings.Join(at, " "), colour)
	last := points[len(points)-1]
	p.print(`<text x="%.1f" y="%.1f" fill="%s">%s</text>`, p.px(last.x)+6, p.py(last.y)+4+below, colour, name)
}

func (p *plot) dot(colour string, q point) {
	p.print(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, p.px(q.x), p.py(q.y), colour)
}

// svg ends the picture: the axes lie over what was drawn.
func (p *plot) svg() []byte {
	p.print(`<path d="M%d,%d V%d H%d" fill="none" stroke="%s"/>`, left, top, floor, right, grey)
	for _, t := range p.x.ticks {
		p.print(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, p.px(t.at), floor+16, t.name)
	}
	for _, t := range p.y.ticks {
		p.print(`<text x="%d" y="%.1f" text-anchor="end">%s</text>`, left-6, p.py(t.at)+4, t.name)
	}
	p.print(`<text x="%d" y="%d" text-anchor="middle">%s</text>`, (left+right)/2, floor+34, p.x.name)
	p.print(`<text x="14" y="%d" text-anchor="middle" transform="rotate(-90 14 %d)">%s</text>`, (top+floor)/2, (top+floor)/2, p.y.name)
	p.print(`</svg>`)
	return []byte(p.b.String())
}
