// Package grants is the contract of topic grants.v1: what was ever granted to
// each wallet, one record a customer and metric.
//
// The control plane raises it with each top-up, the relay carries it, and
// gateways judge prepaid quotas by it: balance = granted − consumed + refunded
// − forfeited, of which only the first is here and the others are counted in
// Redis. Granted never falls: what a grant leaves at its end is forfeited there.
package grants
