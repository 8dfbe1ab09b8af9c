package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// strayTenant doubts a tenant that is no customer, where there are customers: a
// tenant needs no customer, and so the control plane takes it. It is empty
// where there is nothing to doubt.
func strayTenant(ctx context.Context, c *connection, tenant string) string {
	err := c.do(ctx, call{method: http.MethodGet, path: customerKind.item(tenant)})
	var answer *answerError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &answer) || answer.status != http.StatusNotFound:
		return fmt.Sprintf("could not look for a customer of the id %q: %v", tenant, err)
	}
	var anyone page[json.RawMessage]
	if err := c.do(ctx, call{method: http.MethodGet, path: customerKind.path + "?limit=1", into: &anyone}); err != nil {
		return fmt.Sprintf("could not look for customers: %v", err)
	}
	if len(anyone.Items) == 0 {
		return "" // nothing is sold here
	}
	return fmt.Sprintf("no customer has the id %q; a tenant needs none, but the name may be misspelt (sluice customers list)", tenant)
}
