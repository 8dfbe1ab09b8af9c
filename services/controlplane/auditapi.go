package controlplane

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// SpanInput is a stretch of time in a query.
type SpanInput struct {
	From time.Time `query:"from" doc:"From this time on (RFC 3339)."`
	To   time.Time `query:"to" doc:"Before this time (RFC 3339)."`
}

// check refuses a stretch that holds nothing. Whether the beginning of year 1 is
// given only the query tells: it is the zero time, which stands for none.
func (in SpanInput) check(ctx context.Context) *Problem {
	switch {
	case in.To.IsZero() && callOf(ctx).routed.URL.Query().Get("to") != "":
		return invalid(FieldError{"query", "to", "must be after " + instant(time.Time{}) + ", or be left out"})
	case !in.From.IsZero() && !in.To.IsZero() && !in.From.Before(in.To):
		return invalid(FieldError{"query", "to", "must be after from"})
	}
	return nil
}

type auditInput struct {
	PageInput
	SpanInput
	Kind  string `query:"kind" enum:"rule,override,service,key,customer,plan,subscription,wallet,webhook,purge" doc:"Only changes of this kind."`
	ID    string `query:"id" doc:"Only changes of what has this id."`
	Actor string `query:"actor" doc:"Only changes by the token of this name."`
}

func (s *Service) registerAudit(api huma.API) {
	register(s, api, huma.Operation{OperationID: "list-audit", Method: http.MethodGet, Path: "/v1/audit", Tags: []string{"audit"},
		Summary: "Who changed what, the newest first"}, nil, s.listAudit)
}

func (s *Service) listAudit(ctx context.Context, in *auditInput) (*struct{ Body Page[AuditEntry] }, error) {
	if p := in.check(ctx); p != nil {
		return nil, p
	}
	last, p := decodeCursor("audit", in.Cursor)
	if p != nil {
		return nil, p
	}
	q := auditQuery{kind: in.Kind, key: in.ID, actor: in.Actor, from: in.From, to: in.To, limit: in.Limit + 1}
	if last != "" {
		var err error
		if q.before, err = strconv.ParseInt(last, 10, 64); err != nil || q.before < 1 {
			return nil, invalid(FieldError{"query", "cursor", "must be the next of an earlier page of this list"})
		}
	}
	entries, err := s.store.auditLog(ctx, q)
	if err != nil {
		return nil, err
	}
	page := Page[AuditEntry]{Items: entries}
	if len(entries) > in.Limit {
		page.Items = entries[:in.Limit]
		page.Next = encodeCursor("audit", strconv.FormatInt(page.Items[in.Limit-1].ID, 10))
	}
	return &struct{ Body Page[AuditEntry] }{page}, nil
}
