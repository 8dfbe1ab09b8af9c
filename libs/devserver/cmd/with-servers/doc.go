// Command with-servers runs a command with real servers around it; see package withservers.
//
//	with-servers -- go test -tags integration ./...
//	with-servers --print-env /tmp/env.sh -- sleep infinity
package main
