// Command generate writes docs/reference (package reference) into the folder
// given; go generate in services/sluice runs it.
package main
