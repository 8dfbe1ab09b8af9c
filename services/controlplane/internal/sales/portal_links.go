package sales

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/libs/ticket"
)

// PortalLink asks for a link that opens a customer's account in the portal.
type PortalLink struct {
	ExpiresIn string `json:"expiresIn,omitempty" doc:"How long the link holds, such as 72h: 1m to 2160h; 24h by default. Nothing ends it sooner but dropping the key it is signed with."`
}

// PortalLinkMade is the link. Whoever has it sees the account.
type PortalLinkMade struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expiresAt"`
}

const (
	defaultLinkLife = 24 * time.Hour
	minLinkLife     = time.Minute
	maxLinkLife     = ticket.PortalLife
)

// Portal is what links to the customer portal are made of.
type Portal struct {
	// URL is where customers reach it.
	URL string
	// Keys sign; nil where there is no portal.
	Keys *ticket.Keys
}

func (s *Handlers) registerPortalLinks(a *api.API) {
	api.Register(a, huma.Operation{OperationID: "create-portal-link", Method: http.MethodPost, Path: "/v1/customers/{id}/portal-links", Tags: []string{"customers"},
		DefaultStatus: http.StatusCreated,
		Summary:       "Make a link that opens a customer's account in the portal",
		Description:   "It is signed and kept nowhere: whoever has it sees the account until it expires."}, reflect.TypeFor[PortalLink](), s.createPortalLink)
}

func (s *Handlers) createPortalLink(ctx context.Context, in *struct{ api.KeyInput }) (*struct{ Body PortalLinkMade }, error) {
	var asked PortalLink
	if p := api.Decode(ctx, &asked); p != nil {
		return nil, p
	}
	life, err := linkLife(asked.ExpiresIn)
	if err != nil {
		return nil, err
	}
	if s.Portal.Keys == nil {
		return nil, api.NewProblem(http.StatusConflict, "no-portal", "there is no portal here: portal.keysFile is not configured")
	}
	if _, err := s.Store.Get(ctx, store.Customers, in.ID); err != nil {
		return nil, err
	}
	now := s.Store.Now().UTC().Truncate(time.Millisecond)
	text, signErr := s.Portal.Keys.Sign(ticket.Ticket{Purpose: ticket.Portal, Subject: in.ID, NotBefore: now, Expiry: now.Add(life)})
	if signErr != nil {
		return nil, signErr
	}
	link := strings.TrimSuffix(s.Portal.URL, "/") + "/open?" + url.Values{"ticket": {text}}.Encode()
	return &struct{ Body PortalLinkMade }{PortalLinkMade{URL: link, ExpiresAt: now.Add(life)}}, nil
}

func linkLife(text string) (time.Duration, error) {
	if text == "" {
		return defaultLinkLife, nil
	}
	life, err := time.ParseDuration(text)
	if err != nil || life < minLinkLife || life > maxLinkLife {
		return 0, api.Invalid(api.InBody("expiresIn", "must be a duration from 1m to 2160h, such as 72h"))
	}
	return life, nil
}
