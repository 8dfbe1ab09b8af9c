package controlplane

import (
	libcatalog "github.com/sluice-platform/sluice/libs/catalog"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
)

// serviceList narrows nothing yet; there are few services.
type serviceList struct{ PageInput }

func (serviceList) filters() []filter { return nil }

func serviceResource() resource[catalog.Service, serviceList] {
	return resource[catalog.Service, serviceList]{
		entity: serviceEntity, path: "/v1/services", item: "service", keyField: "name",
		key:       func(s *catalog.Service) *string { return &s.Name },
		version:   func(s *catalog.Service) *int64 { return &s.Version },
		validate:  func(s catalog.Service) []FieldError { return bodyErrors(libcatalog.Validate(s)) },
		normalize: libcatalog.Normalize,
	}
}
