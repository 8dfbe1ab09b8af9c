package rules

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/resource"

	libcatalog "github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

func (s *Handlers) serviceResource() resource.Resource[catalog.Service, resource.Plain] {
	return resource.Resource[catalog.Service, resource.Plain]{
		Entity: store.Services, Path: "/v1/services", Item: "service", KeyField: "name",
		ID:        func(s *catalog.Service) *string { return &s.Name },
		Version:   func(s *catalog.Service) *int64 { return &s.Version },
		Validate:  func(s catalog.Service) []api.FieldError { return api.BodyErrors(libcatalog.Validate(s)) },
		Names:     func(s catalog.Service) []api.Name { return []api.Name{{Field: "name", Value: s.Name}} },
		Normalize: libcatalog.Normalize,
		Then:      serviceChanged,
		Refused:   s.prefixRefused,
	}
}

// prefixRefused tells that another service has the prefix, and which. That one may
// have given it up meanwhile: then what the database said stays all that is known.
func (s *Handlers) prefixRefused(ctx context.Context, doc catalog.Service, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.ConstraintName != "catalog_prefix" {
		return err
	}
	p := api.NewProblem(http.StatusConflict, "prefix-taken", "another service has this prefix")
	p.Errors = []api.FieldError{api.InBody("prefix", "must be a prefix that no other service has")}
	var owner string
	find := s.store.Pool.QueryRow(ctx, `SELECT key FROM catalog WHERE document->>'prefix' = $1 AND key <> $2`, doc.Prefix, doc.Name)
	if find.Scan(&owner) == nil {
		p.Detail = fmt.Sprintf("service %q has this prefix", owner)
		p.Errors[0].Message += fmt.Sprintf("; service %q has it", owner)
	}
	return p
}
