package controlplane

import (
	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// customerList narrows nothing.
type customerList struct{ PageInput }

func (customerList) filters() []filter { return nil }

func customerResource() resource[sales.Customer, customerList] {
	return resource[sales.Customer, customerList]{
		entity: customerEntity, path: "/v1/customers", item: "customer", keyField: "id",
		key:       func(c *sales.Customer) *string { return &c.ID },
		version:   func(c *sales.Customer) *int64 { return &c.Version },
		validate:  func(c sales.Customer) []FieldError { return bodyErrors(plan.ValidateCustomer(c)) },
		normalize: func(c sales.Customer) sales.Customer { return c },
	}
}
