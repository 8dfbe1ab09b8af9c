// Package state derives what a client wants to know of a counter (remaining, reset,
// retry-after) from the numbers that decide.lua answers. Everything is integer
// arithmetic in µs: rounding never promises a unit or a moment too early.
package state
