// Package portal shows customers their own account: what they used, what is
// left, their top-ups and invoices.
//
// # Model
//
// A customer opens a signed link (libs/ticket, purpose portal) that says who it
// is and until when. The portal keeps the ticket in a cookie and checks it at
// every request, from memory. Only then does it ask the control plane's REST
// API, for that customer and no other, and writes a page of plain HTML: no
// script, nothing from elsewhere.
//
// # Invariants
//
//   - Who is asking comes from the ticket alone. A customer that is named in a
//     path, query, header or body changes nothing.
//   - A ticket that is forged, expired or for something else is refused with 403
//     before anything else is asked: no REST call, no database, no Redis.
//   - The ticket is never in a page, a log, a redirect or a Referer.
//   - The portal has no database and no Redis: it holds one token of role
//     readonly for the control plane.
//
// Fed by the control plane's REST API (schemas/openapi) and by whoever hands
// out links; feeds browsers.
package portal
