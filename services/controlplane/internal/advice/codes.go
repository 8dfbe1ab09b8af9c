package advice

// Codes of warnings; they never change.
const (
	UnreachableRule   = "unreachable-rule"
	UnknownService    = "unknown-service"
	UnknownEndpoint   = "unknown-endpoint"
	UnmatchedOverride = "unmatched-override"
	UnknownCustomer   = "unknown-customer"
)
