package api

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// fieldDocs is one field of a body, by its path: limit.window, upstreams[].url.
type fieldDocs struct {
	Path, Type, About string
	Required          bool
}

// fieldsOf lists the fields of a schema and of all below it, what is required
// first. Our schemas hold no cycle.
func fieldsOf(schemas huma.Registry, schema *huma.Schema) []fieldDocs {
	return appendFields(nil, schemas, "", schema)
}

func appendFields(fields []fieldDocs, schemas huma.Registry, prefix string, schema *huma.Schema) []fieldDocs {
	schema = resolved(schemas, schema)
	names := slices.Collect(maps.Keys(schema.Properties))
	required := func(name string) int {
		if slices.Contains(schema.Required, name) {
			return 0
		}
		return 1
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(required(a), required(b)), strings.Compare(a, b))
	})
	for _, name := range names {
		property := schema.Properties[name]
		whole := resolved(schemas, property)
		path := prefix + name
		fields = append(fields, fieldDocs{
			Path: path, Type: typeText(schemas, whole), Required: required(name) == 0, About: cmp.Or(property.Description, whole.Description),
		})
		if whole.Type == huma.TypeArray {
			path, whole = path+"[]", whole.Items
		}
		fields = appendFields(fields, schemas, path+".", whole)
	}
	return fields
}

// resolved follows a reference, also one that describe put a note beside.
func resolved(schemas huma.Registry, schema *huma.Schema) *huma.Schema {
	if len(schema.AllOf) == 1 {
		schema = schema.AllOf[0]
	}
	if schema.Ref != "" {
		return schemas.SchemaFromRef(schema.Ref)
	}
	return schema
}

// nameOf is the name of a referenced schema.
func nameOf(schema *huma.Schema) string {
	return schema.Ref[strings.LastIndexByte(schema.Ref, '/')+1:]
}

func typeText(schemas huma.Registry, schema *huma.Schema) string {
	switch {
	case len(schema.Enum) > 0:
		values := make([]string, len(schema.Enum))
		for i, v := range schema.Enum {
			values[i] = fmt.Sprint(v)
		}
		return strings.Join(values, " | ")
	case schema.Format == "date-time":
		return "time (RFC 3339)"
	case schema.Type == huma.TypeArray:
		return "list of " + typeText(schemas, resolved(schemas, schema.Items)) + "s"
	}
	return cmp.Or(schema.Type, "any JSON")
}
