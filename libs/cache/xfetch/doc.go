// Package xfetch is the arithmetic of probabilistic early refresh: when a reader refreshes a value before it expires, and
// what comes of it. It knows no cache and no clock; libs/cache draws by it, and its charts show it.
package xfetch
