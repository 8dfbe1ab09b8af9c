package controlplane

import (
	libcatalog "github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

func serviceResource() resource[catalog.Service, PageInput] {
	return resource[catalog.Service, PageInput]{
		entity: serviceEntity, path: "/v1/services", item: "service", keyField: "name",
		key:       func(s *catalog.Service) *string { return &s.Name },
		version:   func(s *catalog.Service) *int64 { return &s.Version },
		validate:  func(s catalog.Service) []FieldError { return bodyErrors(libcatalog.Validate(s)) },
		names:     func(s catalog.Service) []given { return []given{{"name", s.Name}} },
		normalize: libcatalog.Normalize,
	}
}
