package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

// answered is a document as a write answers it: with warnings, if there are any.
type answered[T any] struct {
	Document T
	Warnings []api.Warning
}

// MarshalJSON puts the warnings behind the fields of the document.
func (a answered[T]) MarshalJSON() ([]byte, error) {
	doc, err := json.Marshal(a.Document)
	if err != nil || len(a.Warnings) == 0 {
		return doc, err
	}
	warnings, err := json.Marshal(a.Warnings)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(doc[:len(doc)-1], `,"warnings":%s}`, warnings), nil
}

// writtenSuffix ends the names of the schemas of what writes answer.
const writtenSuffix = "Written"

// Schema refers to a schema that DescribeWritten completes.
func (answered[T]) Schema(r huma.Registry) *huma.Schema {
	name := reflect.TypeFor[T]().Name() + writtenSuffix
	r.Schema(reflect.TypeFor[T](), true, "")
	r.Map()[name] = &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{
		"warnings": r.Schema(reflect.TypeFor[[]api.Warning](), true, ""),
	}}
	return &huma.Schema{Ref: "#/components/schemas/" + name}
}

// DescribeWritten gives what writes answer the fields of the documents, which are
// described by then.
func DescribeWritten(schemas huma.Registry) {
	for name, written := range schemas.Map() {
		base, found := schemas.Map()[strings.TrimSuffix(name, writtenSuffix)]
		if !strings.HasSuffix(name, writtenSuffix) || !found {
			continue
		}
		for field, schema := range base.Properties {
			written.Properties[field] = schema
		}
		written.Properties["warnings"].Description = "What is valid and yet likely a mistake, judged beside what is stored; absent if nothing is."
		written.Required, written.AdditionalProperties = base.Required, base.AdditionalProperties
	}
}

// warningsOf are those of documents. A failure to find them is logged, and
// changes nothing.
func (o operations[T, L]) warningsOf(ctx context.Context, docs []T) []api.Warning {
	if o.Warn == nil || len(docs) == 0 {
		return nil
	}
	found, err := o.Warn(ctx, o.store.Pool, docs)
	if err != nil {
		api.Log(ctx).WarnContext(ctx, "look for warnings", "kind", o.Kind, "error", err)
	}
	return found
}

// Documents are those of one kind, such as a file has.
type Documents[T any] struct {
	Items []T `json:"items" nullable:"false" doc:"Whole documents, as they would be written; at most 5000."`
}

// Warnings are what is likely a mistake in documents.
type Warnings struct {
	Warnings []api.Warning `json:"warnings" nullable:"false"`
}

// mostJudged documents are judged in one call.
const mostJudged = 5000

func (o operations[T, L]) registerWarnings(a *api.API) {
	path := "/v1/warnings/" + o.Item + "s"
	tags := []string{o.Item + "s"}
	api.Register(a, huma.Operation{OperationID: "list-" + o.Item + "-warnings", Method: http.MethodGet, Path: path, Tags: tags,
		Summary: "What is likely a mistake in the stored " + o.Item + "s", Description: "Of the first 5000, by " + o.KeyField + "."}, nil, o.storedWarnings)
	api.Register(a, huma.Operation{OperationID: "find-" + o.Item + "-warnings", Method: http.MethodPost, Path: path, Tags: tags,
		Summary:     "What would likely be a mistake in " + o.Item + "s, were they written together",
		Description: "Nothing is written. Each document is judged beside the others and beside what is stored; one that is not valid is left aside."},
		reflect.TypeFor[Documents[T]](), o.wantedWarnings)
}

func (o operations[T, L]) storedWarnings(ctx context.Context, _ *struct{}) (*struct{ Body Warnings }, error) {
	records, err := o.store.List(ctx, o.Entity, nil, "", mostJudged)
	if err != nil {
		return nil, err
	}
	docs, err := store.DecodeAll[T](records)
	if err != nil {
		return nil, err
	}
	return warned(o.warningsOf(ctx, docs)), nil
}

func (o operations[T, L]) wantedWarnings(ctx context.Context, _ *struct{}) (*struct{ Body Warnings }, error) {
	var in Documents[T]
	if p := api.Decode(ctx, &in); p != nil {
		return nil, p
	}
	if len(in.Items) > mostJudged {
		return nil, api.Invalid(api.InBody("items", fmt.Sprintf("must be at most %d", mostJudged)))
	}
	var docs []T
	for _, doc := range in.Items {
		if o.complete(&doc, ""); len(o.Validate(doc)) == 0 {
			docs = append(docs, o.Normalize(doc))
		}
	}
	return warned(o.warningsOf(ctx, docs)), nil
}

func warned(found []api.Warning) *struct{ Body Warnings } {
	return &struct{ Body Warnings }{Warnings{append([]api.Warning{}, found...)}} // an empty list is [], not null
}
