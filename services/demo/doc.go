// Package demo is a service to stand behind the gate: it answers every request
// and counts those it saw, so that anyone can check that a request which the
// gate cut never arrived.
//
// GET /stats answers {"requests":N}. N counts neither itself nor health checks
// (/healthz); it starts at 0 with the process. Any other path answers 200 with
// a small JSON echo.
//
// Fed by the gateway (or by curl, straight); feeds nobody.
package demo
