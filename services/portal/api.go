package portal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/sluice-platform/sluice/schemas/sales"
)

// maxAnswer bounds what is read of one answer.
const maxAnswer = 8 << 20

// errNotFound: the customer has no such thing.
var errNotFound = errors.New("not found")

// api reads accounts over the control plane's REST API.
type api struct {
	cfg    API
	client *http.Client
}

func newAPI(cfg API) *api {
	return &api{cfg: cfg, client: &http.Client{
		Timeout: cfg.Timeout,
		// A redirect would carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// get reads path, whose elements are escaped here, into out: JSON, or the bytes.
func (a *api) get(ctx context.Context, out any, query url.Values, elements ...string) error {
	for i, e := range elements {
		if e == "." || e == ".." {
			return errNotFound // they would name another path
		}
		elements[i] = url.PathEscape(e)
	}
	address := strings.TrimSuffix(a.cfg.URL, "/") + "/v1/" + strings.Join(elements, "/")
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("read account: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+a.cfg.Token.Reveal())
	res, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("read account: %w", err)
	}
	defer res.Body.Close() // it was only read
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("read account: %w", err)
	case res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusBadRequest:
		return errNotFound // an id that cannot be is one that is not there
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("read account: the control plane answers %d", res.StatusCode)
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = body
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("read account: %w", err)
	}
	return nil
}

// items is a page of a list.
type items[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

// invoice reads one, if it is the customer's.
func (a *api) invoice(ctx context.Context, customer, id string) (sales.Invoice, error) {
	var i sales.Invoice
	if err := a.get(ctx, &i, nil, "invoices", id); err != nil {
		return i, err
	}
	if i.Customer != customer {
		return sales.Invoice{}, errNotFound
	}
	return i, nil
}
