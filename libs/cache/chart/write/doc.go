// Command write writes the pictures of package chart into a folder; `go
// generate` runs it.
package main
