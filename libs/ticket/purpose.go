package ticket

// Portal is the purpose of links that open a customer's account (services/portal);
// the subject is the customer's id.
const Portal = "portal"
