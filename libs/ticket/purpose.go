package ticket

import "time"

// Portal is the purpose of links that open a customer's account (services/portal);
// the subject is the customer's id.
const Portal = "portal"

// PortalLife is the longest such a link may hold. Whoever signs one keeps to it,
// and whoever is shown one refuses those that end later.
const PortalLife = 90 * 24 * time.Hour
