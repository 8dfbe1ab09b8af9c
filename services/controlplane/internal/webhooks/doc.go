// Package webhooks writes and reads where quota events are sent to, with their
// secrets and deliveries. services/webhooks delivers.
//
// # Invariants
//
//   - A webhook's secret is answered once and stored sealed, apart from its
//     document.
package webhooks
