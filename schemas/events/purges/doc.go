// Package purges is the contract of topic purges.v1: which stored answers no
// cache of a gateway may serve any more.
//
// # Model
//
// A purge is a target (a URL, a prefix, a tag, all of a service) and a place in
// the order of writes: (generation, version) of its record. A stored answer
// carries the newest place its gateway knew of when it began to load it. It is
// void where a purge covers it whose place is newer: no clock is asked, and a
// gateway that was away reads the topic first. Purging the same target again
// moves its record on.
//
// The control plane writes it, the relay carries it, gateways obey it.
package purges
