package sales

// Customer is one who buys: a tenant with a name.
type Customer struct {
	// ID is the tenant's id; 1 to 128 characters, no slash.
	ID string `json:"id"`
	// Version grows with every write of any customer; set by the control plane.
	Version int64 `json:"version,omitempty"`
	// Name is what invoices and people call the customer.
	Name string `json:"name"`
	// Timezone is the IANA name of the zone that periods are cut in where the
	// plan names none; empty is UTC.
	Timezone string `json:"timezone,omitempty"`
	// Currency is the ISO 4217 code that the customer pays in; empty takes any
	// plan's.
	Currency string `json:"currency,omitempty"`
	// Contact is who is told about use and invoices.
	Contact *Contact `json:"contact,omitempty"`
}

// Contact is where a customer is reached.
type Contact struct {
	Name  string `json:"name,omitempty"`
	Email string `json:"email,omitempty"`
	// Address is of the customer as invoices show it; lines end in \n.
	Address string `json:"address,omitempty"`
	// TaxID is the customer's number at the tax office.
	TaxID string `json:"taxId,omitempty"`
}
