package controlplane

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/plan"
	"github.com/sluice-platform/sluice/schemas/sales"
)

func (s *Service) customerResource() resource[sales.Customer, PageInput] {
	return resource[sales.Customer, PageInput]{
		entity: customerEntity, path: "/v1/customers", item: "customer", keyField: "id",
		key:       func(c *sales.Customer) *string { return &c.ID },
		version:   func(c *sales.Customer) *int64 { return &c.Version },
		validate:  func(c sales.Customer) []FieldError { return bodyErrors(plan.ValidateCustomer(c)) },
		normalize: func(c sales.Customer) sales.Customer { return c },
		then:      s.customerChanged,
		ownList:   true,
	}
}

// customerChanged follows a customer's change in what the customer is
// subscribed to: a deletion is refused while that is something, and another
// timezone moves the periods of rules whose plan names none.
func (s *Service) customerChanged(ctx context.Context, tx pgx.Tx, before, after record) error {
	switch {
	case after.document == nil:
		return unsubscribed(ctx, tx, "customer", before.key)
	case before.document == nil:
		return nil
	}
	var was, is sales.Customer
	if err := json.Unmarshal(before.document, &was); err != nil {
		return fmt.Errorf("decode customer before: %w", err)
	}
	if err := json.Unmarshal(after.document, &is); err != nil {
		return fmt.Errorf("decode customer after: %w", err)
	}
	if was.Timezone == is.Timezone {
		return nil
	}
	sale := s.store.sale(tx, callOf(ctx).who.name)
	sale.customer = is
	return sale.settleAll(ctx, `customer = $1 AND status = 'active'`, is.ID)
}
