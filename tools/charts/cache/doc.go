// Package chart draws which method when: the pictures in docs/walks/cache-stampede. It drives the arithmetic that
// libs/cache draws and advises by, so that a picture cannot show what the code does not do.
//
// Files is what `go generate` writes; a test fails when a picture is stale.
package chart
