package history

import (
	"context"
	"net/http"
	"strconv"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/danielgtaylor/huma/v2"
)

type auditInput struct {
	api.PageInput
	api.SpanInput
	Kind  string `query:"kind" enum:"rule,override,service,key,customer,plan,subscription,wallet,webhook,purge" doc:"Only changes of this kind."`
	ID    string `query:"id" doc:"Only changes of what has this id."`
	Actor string `query:"actor" doc:"Only changes by the token of this name."`
}

func (s *Handlers) registerAudit(a *api.API) {
	api.Register(a, huma.Operation{OperationID: "list-audit", Method: http.MethodGet, Path: "/v1/audit", Tags: []string{"audit"},
		Summary: "Who changed what, the newest first"}, nil, s.listAudit)
}

func (s *Handlers) listAudit(ctx context.Context, in *auditInput) (*struct{ Body api.Page[store.AuditEntry] }, error) {
	if p := in.Check(ctx); p != nil {
		return nil, p
	}
	last, p := api.DecodeCursor("audit", in.Cursor)
	if p != nil {
		return nil, p
	}
	q := store.AuditQuery{Kind: in.Kind, Key: in.ID, Actor: in.Actor, From: in.From, To: in.To, Limit: in.Limit + 1}
	if last != "" {
		var err error
		if q.Before, err = strconv.ParseInt(last, 10, 64); err != nil || q.Before < 1 {
			return nil, api.Invalid(api.InQuery("cursor", "must be the next of an earlier page of this list"))
		}
	}
	entries, err := s.store.AuditLog(ctx, q)
	if err != nil {
		return nil, err
	}
	page := api.Page[store.AuditEntry]{Items: entries}
	if len(entries) > in.Limit {
		page.Items = entries[:in.Limit]
		page.Next = api.EncodeCursor("audit", strconv.FormatInt(page.Items[in.Limit-1].ID, 10))
	}
	return &struct{ Body api.Page[store.AuditEntry] }{page}, nil
}
