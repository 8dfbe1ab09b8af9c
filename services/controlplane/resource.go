package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/strictjson"
)

// resource is a kind of document that callers write whole: rules, services.
// L is what its list takes.
type resource[T any, L listInput] struct {
	entity
	// path is the collection's, and item the singular, for operation ids.
	path, item string
	// keyField is the name of the field that identifies, for messages.
	keyField string
	key      func(*T) *string
	version  func(*T) *int64
	// newKey makes an id for POST without one; nil refuses that.
	newKey func() string
	// derived is the key that follows from the document; nil where callers choose it.
	derived  func(T) string
	validate func(T) []FieldError
	// names are those in a document that must not be spaced.
	names     func(T) []given
	normalize func(T) T
	// unknown has a better message for a field that is not one, or is nil.
	unknown func(field string) (message string, ok bool)
	// carry completes a document with what follows from the live one before it
	// (nil if none); nil is nothing. It runs under the row's lock.
	carry func(current []byte, doc *T, now time.Time) error
	// then is what else belongs to the transaction of a write or deletion; nil
	// is nothing.
	then func(ctx context.Context, tx pgx.Tx, before, after record) error
	// refused says more of what the database refused, or returns err; nil is
	// nothing.
	refused func(ctx context.Context, doc T, err error) error
	// ownList: the list is not the plain one, and registered elsewhere.
	ownList bool
}

// listInput is a list's parameters: a page, and what narrows it.
type listInput interface {
	page() PageInput
	filters() []filter
}

func (p PageInput) page() PageInput { return p }

func (PageInput) filters() []filter { return nil }

// operations are one resource's handlers.
type operations[T any, L listInput] struct {
	*Service
	resource[T, L]
}

func registerResource[T any, L listInput](s *Service, api huma.API, r resource[T, L]) {
	o := operations[T, L]{s, r}
	body := reflect.TypeFor[T]()
	one := r.path + "/{id}"
	tags := []string{r.item + "s"}
	article := "a "
	if strings.ContainsAny(r.item[:1], "aeiou") {
		article = "an "
	}
	register(s, api, huma.Operation{OperationID: "create-" + r.item, Method: http.MethodPost, Path: r.path, Tags: tags,
		Summary: "Create " + article + r.item, DefaultStatus: http.StatusCreated}, body, o.create)
	if !r.ownList {
		register(s, api, huma.Operation{OperationID: "list-" + r.item + "s", Method: http.MethodGet, Path: r.path, Tags: tags,
			Summary: "List " + r.item + "s, by " + r.keyField}, nil, o.list)
	}
	register(s, api, huma.Operation{OperationID: "get-" + r.item, Method: http.MethodGet, Path: one, Tags: tags,
		Summary: "Get " + article + r.item}, nil, o.get)
	register(s, api, huma.Operation{OperationID: "put-" + r.item, Method: http.MethodPut, Path: one, Tags: tags,
		Summary: "Replace " + article + r.item + ", or create it with If-None-Match: *"}, body, o.put)
	put := api.OpenAPI().Paths[one].Put
	created := *put.Responses["200"]
	created.Description = "Created"
	put.Responses["201"] = &created
	register(s, api, huma.Operation{OperationID: "delete-" + r.item, Method: http.MethodDelete, Path: one, Tags: tags,
		Summary: "Delete " + article + r.item, DefaultStatus: http.StatusNoContent}, nil, o.remove)
}

// KeyInput names one item; net/http has resolved its percent escapes.
type KeyInput struct {
	ID string `path:"id" doc:"The id (of a service: its name), percent-escaped."`
}

func (o operations[T, L]) create(ctx context.Context, in *DryRunInput) (*written[T], error) {
	doc, err := o.decode(ctx, "", true)
	if err != nil {
		return nil, err
	}
	return o.write(ctx, doc, precondition{create: true, post: true}, in.DryRun)
}

func (o operations[T, L]) put(ctx context.Context, in *struct {
	KeyInput
	PutInput
	DryRunInput
}) (*written[T], error) {
	cond, p := parsePrecondition(in.IfMatch, in.IfNoneMatch, true)
	if p != nil {
		return nil, p
	}
	doc, err := o.decode(ctx, in.ID, cond.create)
	if err != nil {
		return nil, err
	}
	return o.write(ctx, doc, cond, in.DryRun)
}

// decode reads, checks and completes the body of a request. key is the path's;
// empty for POST. first: there is no document in whose place it comes.
func (o operations[T, L]) decode(ctx context.Context, key string, first bool) (T, error) {
	var doc T
	found := strictjson.Judge(callOf(ctx).body, &doc, func(d T) []strictjson.FieldError { return o.judge(d, key, first) })
	if len(found) > 0 {
		return doc, o.explained(invalid(bodyErrors(found)...))
	}
	o.complete(&doc, key)
	return o.normalize(doc), nil
}

// complete fills in the key where the body has none.
func (o operations[T, L]) complete(doc *T, key string) {
	given := o.key(doc)
	switch {
	case *given != "":
	case o.derived != nil:
		*given = o.derived(*doc)
	case key != "":
		*given = key
	case o.newKey != nil:
		*given = o.newKey()
	}
}

// judge says what is wrong with a document whose path has the key.
func (o operations[T, L]) judge(doc T, key string, first bool) (found []strictjson.FieldError) {
	o.complete(&doc, key)
	wrong := o.validate(doc)
	if first {
		wrong = append(wrong, spacedErrors(o.names(doc), nil)...)
	}
	for _, e := range wrong {
		found = append(found, strictjson.FieldError{Field: e.Field, Message: e.Message})
	}
	if len(found) == 0 && key != "" && *o.key(&doc) != key {
		found = append(found, strictjson.FieldError{Field: o.keyField, Message: "must be the one in the path, or be left out"})
	}
	return found
}

// explained puts better messages for fields that are none.
func (o operations[T, L]) explained(p *Problem) *Problem {
	for i := range p.Errors {
		if o.unknown == nil {
			break
		}
		if message, ok := o.unknown(p.Errors[i].Field); ok {
			p.Errors[i].Message = message
		}
	}
	return p
}

func (o operations[T, L]) write(ctx context.Context, doc T, cond precondition, dryRun bool) (*written[T], error) {
	key := *o.key(&doc)
	stored, err := o.store.apply(ctx, write{
		entity: o.entity, key: key, actor: callOf(ctx).who.name, cond: cond, then: o.then, dryRun: dryRun,
		build: func(current []byte, version int64) ([]byte, error) {
			*o.version(&doc) = version
			if err := o.keepsNames(current, doc); err != nil {
				return nil, err
			}
			if o.carry != nil {
				if err := o.carry(current, &doc, o.store.now()); err != nil {
					return nil, err
				}
			}
			return json.Marshal(doc)
		},
	})
	switch {
	case err != nil && o.refused != nil:
		return nil, o.refused(ctx, doc, err)
	case err != nil:
		return nil, err
	}
	shown, err := o.answer(stored)
	if err != nil {
		return nil, err
	}
	out := &written[T]{ETag: shown.ETag, Status: shown.Status, Body: shown.Body}
	if cond.create {
		out.Status, out.Location = http.StatusCreated, o.path+"/"+url.PathEscape(key)
	}
	if dryRun {
		out.DryRun, out.ETag = dryRunMark(true), "" // no version of this number will be there to match
	}
	return out, nil
}

func (o operations[T, L]) answer(r record) (*document[T], error) {
	out := &document[T]{ETag: etag(r.version), Status: http.StatusOK}
	if err := json.Unmarshal(r.document, &out.Body); err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", o.kind, err)
	}
	return out, nil
}

func (o operations[T, L]) get(ctx context.Context, in *struct{ KeyInput }) (*document[T], error) {
	r, err := o.store.get(ctx, o.entity, in.ID)
	if err != nil {
		return nil, err
	}
	return o.answer(r)
}

func (o operations[T, L]) list(ctx context.Context, in *L) (*struct{ Body Page[T] }, error) {
	records, next, err := o.store.page(ctx, o.entity, (*in).filters(), (*in).page())
	if err != nil {
		return nil, err
	}
	items, err := decodeAll[T](records)
	return &struct{ Body Page[T] }{Page[T]{Items: items, Next: next}}, err
}

func (o operations[T, L]) remove(ctx context.Context, in *struct {
	KeyInput
	MatchInput
	DryRunInput
}) (*deleted, error) {
	err := o.delete(ctx, write{entity: o.entity, key: in.ID, then: o.then, dryRun: in.DryRun}, in.MatchInput)
	return &deleted{DryRun: dryRunMark(in.DryRun)}, err
}
