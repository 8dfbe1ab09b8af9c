package main

import (
	"fmt"
	"go/types"
	"io"
	"slices"
)

// graph has the files of a package and, for each, the files it uses and by
// what name it uses them first.
type graph struct {
	names []string
	uses  []map[int]string
}

// declared reports whether an object is a function, method, type, constant or
// variable of the package itself: no field and nothing inside a function.
func declared(obj types.Object, pkg *types.Package) bool {
	if obj == nil || obj.Pkg() != pkg {
		return false
	}
	if _, isFunc := obj.(*types.Func); isFunc {
		return true
	}
	return obj.Parent() == pkg.Scope()
}

func (g *graph) total() int {
	n := 0
	for _, uses := range g.uses {
		n += len(uses)
	}
	return n
}

// back counts the arrows that point up when the files stand in this order,
// users above what they use.
func (g *graph) back(order []int) int {
	place := make([]int, len(order))
	for at, f := range order {
		place[f] = at
	}
	n := 0
	for f, uses := range g.uses {
		for to := range uses {
			if place[to] < place[f] {
				n++
			}
		}
	}
	return n
}

// order puts the files so that few arrows point up: the greedy order of Eades,
// Lin and Smyth, then single files moved for as long as that helps. To find
// the least is NP-hard; this is the same for the same files.
func (g *graph) order() []int {
	return g.improve(g.greedy())
}

func (g *graph) greedy() []int {
	left := make([]int, len(g.names))
	for i := range left {
		left[i] = i
	}
	var above, below []int
	for len(left) > 0 {
		best, bestAt, bestScore := -1, -1, 0
		sink := false
		for at, f := range left {
			out, in := 0, 0
			for _, other := range left {
				if _, ok := g.uses[f][other]; ok {
					out++
				}
				if _, ok := g.uses[other][f]; ok {
					in++
				}
			}
			if out == 0 {
				best, bestAt, sink = f, at, true
				break
			}
			if score := out - in; best < 0 || in == 0 || score > bestScore {
				best, bestAt, bestScore = f, at, score
				if in == 0 {
					break
				}
			}
		}
		left = slices.Delete(left, bestAt, bestAt+1)
		if sink {
			below = append(below, best)
		} else {
			above = append(above, best)
		}
	}
	slices.Reverse(below)
	return append(above, below...)
}

// improve moves each file to where it causes the fewest arrows up, until no
// move helps.
func (g *graph) improve(order []int) []int {
	for moved := true; moved; {
		moved = false
		for f := range g.names {
			from := slices.Index(order, f)
			to, gain := g.bestPlace(order, from)
			if gain > 0 {
				order = slices.Insert(slices.Delete(order, from, from+1), to, f)
				moved = true
			}
		}
	}
	return order
}

// bestPlace walks a file over its neighbours, up and then down, and adds up
// what passing each of them would gain.
func (g *graph) bestPlace(order []int, from int) (to, gain int) {
	f := order[from]
	to = from
	sum := 0
	for at := from - 1; at >= 0; at-- {
		sum += g.gainAbove(f, order[at])
		if sum > gain {
			to, gain = at, sum
		}
	}
	sum = 0
	for at := from + 1; at < len(order); at++ {
		sum += g.gainAbove(order[at], f)
		if sum > gain {
			to, gain = at, sum
		}
	}
	return to, gain
}

// gainAbove is by how many arrows up it is better to have a above b than the
// other way round.
func (g *graph) gainAbove(a, b int) int {
	gain := 0
	if _, ok := g.uses[a][b]; ok {
		gain++
	}
	if _, ok := g.uses[b][a]; ok {
		gain--
	}
	return gain
}

// printArrows lists a package's files in their best order, each with the
// arrows against it.
func printArrows(out io.Writer, root, name string) error {
	all, err := load(root, module+name)
	if err != nil {
		return err
	}
	if len(all) != 1 || len(all[0].Syntax) == 0 {
		return fmt.Errorf("there is no package %s", name)
	}
	g := arrowsOf(all[0])
	order := g.order()
	fmt.Fprintf(out, "%s: %d arrows, %d back up. Files from the top:\n", name, g.total(), g.back(order))
	for at, f := range order {
		fmt.Fprintf(out, "  %s\n", g.names[f])
		for _, up := range order[:at] {
			if what, ok := g.uses[f][up]; ok {
				fmt.Fprintf(out, "      ↑ %s: %s\n", g.names[up], what)
			}
		}
	}
	return nil
}
