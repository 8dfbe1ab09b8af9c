// Package backoff spaces out repeated attempts at something that is away.
//
// Delays grow exponentially and are drawn uniformly from zero to the current
// ceiling ("full jitter", M. Brooker, "Exponential Backoff and Jitter", AWS
// Architecture Blog, 2015), so that many processes that lost the same server
// do not come back at the same instant.
package backoff
