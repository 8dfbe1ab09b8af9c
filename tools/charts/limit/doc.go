// Package chart draws what an algorithm lets pass: the pictures in
// docs/algorithms. It drives limit.Model, the reference that the script is
// held against, over simulated traffic, so that a picture cannot show what the
// code does not do.
//
// Files is what `go generate` writes; a test fails when a picture is stale.
package chart
