// Package keys is the contract of topic keys.v1: API keys by their SHA-256,
// and whose requests they identify.
//
// The control plane shows a key once and stores its hash; the relay carries
// the record; gateways look a presented key up by its hash.
package keys
