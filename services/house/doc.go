// Package house holds the tests that keep the layout true: who may import
// whom, what furniture each room has, that every package says what it is, and
// that the documents name what is there. It has no code of its own.
package house
