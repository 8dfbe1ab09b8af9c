package chart

import (
	"fmt"
	"strings"
)

// Geometry of a picture, in pixels.
const (
	left, top   = 40, 34
	step, unit  = 10, 5 // a column's width, a request's height
	most        = 20    // requests in the highest column
	width       = left + seconds*step + 20
	height      = top + most*unit + 30
	floor       = top + most*unit
	colourPass  = "#2a9d6f"
	colourDeny  = "#d0d4da"
	colourLines = "#5b6470"
)

// svg draws columns, with dashed lines at the given seconds.
func svg(title string, columns [seconds]column, edges []int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11" fill="%s">`+"\n", width, height, colourLines)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="16">%s</text>`+"\n", left, title)
	legend(&b)
	for _, edge := range edges {
		x := left + edge*step
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-dasharray="3 3"/>`+"\n", x, top, x, floor, colourLines)
	}
	for s, c := range columns {
		bar(&b, s, 0, c.passed, colourPass)
		bar(&b, s, c.passed, c.denied, colourDeny)
	}
	axes(&b)
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func legend(b *strings.Builder) {
	for i, entry := range []struct{ colour, name string }{{colourPass, "passed"}, {colourDeny, "denied"}} {
		x := width - 150 + i*70
		fmt.Fprintf(b, `<rect x="%d" y="8" width="9" height="9" fill="%s"/><text x="%d" y="16">%s</text>`+"\n", x, entry.colour, x+13, entry.name)
	}
}

func bar(b *strings.Builder, second, from, n int, colour string) {
	if n > 0 {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", left+second*step+1, floor-(from+n)*unit, step-2, n*unit, colour)
	}
}

func axes(b *strings.Builder) {
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`+"\n", left, floor, width-20, floor, colourLines)
	for s := 0; s <= seconds; s += 10 {
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%d s</text>`+"\n", left+s*step, floor+16, s)
	}
	for n := 0; n <= most; n += 10 {
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%d</text>`+"\n", left-6, floor-n*unit+4, n)
	}
}
