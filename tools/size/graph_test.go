package main

import "testing"

func graphOf(n int, arrows ...[2]int) *graph {
	g := &graph{names: make([]string, n), uses: make([]map[int]string, n)}
	for i := range g.uses {
		g.uses[i] = map[int]string{}
	}
	for _, a := range arrows {
		g.uses[a[0]][a[1]] = "x"
	}
	return g
}

func TestOrderHasTheFewestArrowsUp(t *testing.T) {
	for name, c := range map[string]struct {
		g    *graph
		back int
	}{
		"a chain against the order of names": {graphOf(4, [2]int{3, 2}, [2]int{2, 1}, [2]int{1, 0}), 0},
		"a diamond":                          {graphOf(4, [2]int{2, 0}, [2]int{2, 1}, [2]int{0, 3}, [2]int{1, 3}), 0},
		"a circle":                           {graphOf(3, [2]int{0, 1}, [2]int{1, 2}, [2]int{2, 0}), 1},
		"two to and fro":                     {graphOf(3, [2]int{0, 1}, [2]int{1, 0}, [2]int{1, 2}), 1},
		"two circles that share a file":      {graphOf(5, [2]int{0, 1}, [2]int{1, 0}, [2]int{0, 2}, [2]int{2, 0}, [2]int{3, 4}), 2},
		"one arrow closes three circles": {
			graphOf(5, [2]int{0, 1}, [2]int{0, 2}, [2]int{0, 3}, [2]int{1, 4}, [2]int{2, 4}, [2]int{3, 4}, [2]int{4, 0}), 1,
		},
	} {
		if got := c.g.back(c.g.order()); got != c.back {
			t.Errorf("%s: %d arrows up, want %d", name, got, c.back)
		}
	}
}
