package controlplane

import (
	"context"
	"fmt"

	libcatalog "github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

func (s *Service) serviceResource() resource[catalog.Service, PageInput] {
	return resource[catalog.Service, PageInput]{
		entity: serviceEntity, path: "/v1/services", item: "service", keyField: "name",
		key:       func(s *catalog.Service) *string { return &s.Name },
		version:   func(s *catalog.Service) *int64 { return &s.Version },
		validate:  func(s catalog.Service) []FieldError { return bodyErrors(libcatalog.Validate(s)) },
		names:     func(s catalog.Service) []given { return []given{{"name", s.Name}} },
		normalize: libcatalog.Normalize,
		then:      serviceChanged,
		refused:   s.prefixRefused,
	}
}

// prefixRefused names the service that has the prefix. It may have given it up
// meanwhile: then what the database said stays all that is known.
func (s *Service) prefixRefused(ctx context.Context, doc catalog.Service, err error) error {
	if !prefixTaken(err) {
		return err
	}
	var owner string
	find := s.deps.Pool.QueryRow(ctx, `SELECT key FROM catalog WHERE document->>'prefix' = $1 AND key <> $2`, doc.Prefix, doc.Name)
	if find.Scan(&owner) != nil {
		return err
	}
	p := refusedByDatabase(err)
	p.Detail = fmt.Sprintf("service %q has this prefix", owner)
	p.Errors[0].Message += fmt.Sprintf("; service %q has it", owner)
	return p
}
