package api

// Warning is what is valid in a document and yet likely a mistake.
type Warning struct {
	Code    string `json:"code" enum:"unreachable-rule,unknown-service,unknown-endpoint,unmatched-override,unknown-customer" doc:"What kind of mistake it may be; never changes."`
	ID      string `json:"id" doc:"The document's id."`
	Field   string `json:"field" doc:"Path of the field, such as scope.service."`
	Message string `json:"message" doc:"What is likely wrong, for people."`
}
