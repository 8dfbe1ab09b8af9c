package identify

// Identity is whose request it is, as far as the gate knows.
type Identity struct {
	Tenant, User, Application string
	// Key is the API key that proved it, nil without one.
	Key *Key
	// Token is the token that proved it, empty without one. It is never recorded
	// or logged.
	Token string
}

// Caller is the identity of a request, and what its peer may say beside it.
type Caller struct {
	Identity

	// TrustedPeer: the peer may name identities and hops before it.
	TrustedPeer bool
	// Cost is what a trusted peer says the request costs, where CostStated.
	Cost       int64
	CostStated bool
}
