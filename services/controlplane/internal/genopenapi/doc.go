// Command genopenapi writes the control plane's OpenAPI document to the file
// it is told, for `go generate`. A test of the control plane fails while that
// file differs from the code.
package main
