// Command cache runs the same traffic against ways to keep a source from a stampede, and prints what each let through:
// nothing at all, singleflight, otter, sturdyc, rueidis, libs/cache; and for HTTP nginx and the gateway. Its numbers
// are in docs/cache-compared.md.
//
// # Model
//
// Two scenarios, each with real processes (this program, started again) and a private redis-server:
//
//	cold    Processes × Readers read one missing key at one instant
//	expiry  Nodes read one key at a rate for some TTLs, whether earlier reads have returned or not
//
// A load takes Load however many run at once, and is counted here: nodes tell the begin and the end of each over their
// standard output. A proxy's loads are requests at an HTTP origin in this process. A value tells when it was loaded, so
// that a reader knows its age.
//
// # Invariants
//
//   - Every contender gets the same load, TTL, rate and Redis, and is set up as its documentation says; the table's
//     notes tell how.
//   - A read's time counts from when it was due, so one that waits hides no other.
//   - A contender that cannot run is an error, never a row that is left out.
//
// The module is not in the workspace: who uses libs or services gets none of the libraries compared here. Where their
// dependencies change, its go.mod has to follow (GOWORK=off go mod tidy in bench), which make lint checks.
package main
