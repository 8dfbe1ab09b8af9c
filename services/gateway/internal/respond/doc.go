// Package respond tells a client what was decided on its request: the RateLimit fields
// of every answer, and the problem and Retry-After of a request that is rejected.
package respond
