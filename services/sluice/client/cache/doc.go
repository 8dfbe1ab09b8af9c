// Package cache has the commands about answers that gateways store: purge, warm,
// rehearse.
package cache
