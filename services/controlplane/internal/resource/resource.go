package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"
	"github.com/sluice-platform/sluice/libs/strictjson"
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

// Resource is a kind of document that callers write whole: rules, services.
// L is what its list takes.
type Resource[T any, L ListInput] struct {
	store.Entity
	// Path is the collection's, and Item the singular, for operation ids.
	Path, Item string
	// KeyField is the name of the field that identifies, for messages.
	KeyField string
	ID       func(*T) *string
	Version  func(*T) *int64
	// NewKey makes an id for POST without one; nil refuses that.
	NewKey func() string
	// Derived is the key that follows from the document; nil where callers choose it.
	Derived  func(T) string
	Validate func(T) []api.FieldError
	// Names are those in a document that must not be padded.
	Names     func(T) []api.Name
	Normalize func(T) T
	// Unknown has a better message for a field that is not one, or is nil.
	Unknown func(field string) (message string, ok bool)
	// Carry completes a document with what follows from the live one before it
	// (nil if none); nil is nothing. It runs under the row's lock.
	Carry func(current []byte, doc *T, now time.Time) error
	// Then is what else belongs to the transaction of a write or deletion; nil
	// is nothing.
	Then func(ctx context.Context, tx pgx.Tx, before, after store.Record) error
	// Refused says more of what the database refused, or returns err; nil is
	// nothing.
	Refused func(ctx context.Context, doc T, err error) error
	// OwnList: the list is not the plain one, and registered elsewhere.
	OwnList bool
}

// operations are one resource's handlers.
type operations[T any, L ListInput] struct {
	store *store.Store
	Resource[T, L]
}

// Register adds the operations of a resource.
func Register[T any, L ListInput](a *api.API, s *store.Store, r Resource[T, L]) {
	o, read := operations[T, L]{s, r}, Reader[T, L]{s, r.Entity}
	body := reflect.TypeFor[T]()
	one := r.Path + "/{id}"
	tags := []string{r.Item + "s"}
	article := "a "
	if strings.ContainsAny(r.Item[:1], "aeiou") {
		article = "an "
	}
	api.Register(a, huma.Operation{OperationID: "create-" + r.Item, Method: http.MethodPost, Path: r.Path, Tags: tags,
		Summary: "Create " + article + r.Item, DefaultStatus: http.StatusCreated}, body, o.create)
	if !r.OwnList {
		api.Register(a, huma.Operation{OperationID: "list-" + r.Item + "s", Method: http.MethodGet, Path: r.Path, Tags: tags,
			Summary: "List " + r.Item + "s, by " + r.KeyField}, nil, read.List)
	}
	api.Register(a, huma.Operation{OperationID: "get-" + r.Item, Method: http.MethodGet, Path: one, Tags: tags,
		Summary: "Get " + article + r.Item}, nil, read.Get)
	api.Register(a, huma.Operation{OperationID: "put-" + r.Item, Method: http.MethodPut, Path: one, Tags: tags,
		Summary: "Replace " + article + r.Item + ", or create it with If-None-Match: *"}, body, o.put)
	put := a.Contract().Paths[one].Put
	created := *put.Responses["200"]
	created.Description = "Created"
	put.Responses["201"] = &created
	api.Register(a, huma.Operation{OperationID: "delete-" + r.Item, Method: http.MethodDelete, Path: one, Tags: tags,
		Summary: "Delete " + article + r.Item, DefaultStatus: http.StatusNoContent}, nil, o.remove)
}

func (o operations[T, L]) create(ctx context.Context, in *DryRunInput) (*written[T], error) {
	doc, err := o.decode(ctx, "", true)
	if err != nil {
		return nil, err
	}
	return o.write(ctx, doc, api.Precondition{Create: true, Post: true}, in.DryRun)
}

func (o operations[T, L]) put(ctx context.Context, in *struct {
	api.KeyInput
	api.PutInput
	DryRunInput
}) (*written[T], error) {
	cond, p := api.ParsePrecondition(in.IfMatch, in.IfNoneMatch, true)
	if p != nil {
		return nil, p
	}
	doc, err := o.decode(ctx, in.ID, cond.Create)
	if err != nil {
		return nil, err
	}
	return o.write(ctx, doc, cond, in.DryRun)
}

// decode reads, checks and completes the body of a request. key is the path's;
// empty for POST. first: there is no document in whose place it comes.
func (o operations[T, L]) decode(ctx context.Context, key string, first bool) (T, error) {
	var doc T
	found := strictjson.Judge(api.Body(ctx), &doc, func(d T) []strictjson.FieldError { return o.judge(d, key, first) })
	if len(found) > 0 {
		return doc, o.explained(api.Invalid(api.BodyErrors(found)...))
	}
	o.complete(&doc, key)
	return o.Normalize(doc), nil
}

// complete fills in the key where the body has none.
func (o operations[T, L]) complete(doc *T, key string) {
	given := o.ID(doc)
	switch {
	case *given != "":
	case o.Derived != nil:
		*given = o.Derived(*doc)
	case key != "":
		*given = key
	case o.NewKey != nil:
		*given = o.NewKey()
	}
}

// judge says what is wrong with a document whose path has the key.
func (o operations[T, L]) judge(doc T, key string, first bool) (found []strictjson.FieldError) {
	o.complete(&doc, key)
	wrong := o.Validate(doc)
	if first {
		wrong = append(wrong, api.CheckNames(o.Names(doc), nil)...)
	}
	for _, e := range wrong {
		found = append(found, strictjson.FieldError{Field: e.Field, Message: e.Message})
	}
	if len(found) == 0 && key != "" && *o.ID(&doc) != key {
		found = append(found, strictjson.FieldError{Field: o.KeyField, Message: "must be the one in the path, or be left out"})
	}
	return found
}

// keepsNames refuses a document that takes the place of another with a new
// name that is padded.
func (o operations[T, L]) keepsNames(current []byte, doc T) error {
	names := o.Names(doc)
	if current == nil || !slices.ContainsFunc(names, api.Name.Padded) {
		return nil // a document that is the first was judged with its body
	}
	var before T
	if err := json.Unmarshal(current, &before); err != nil {
		return fmt.Errorf("decode stored %s: %w", o.Kind, err)
	}
	if found := api.CheckNames(names, o.Names(before)); len(found) > 0 {
		return api.Invalid(found...)
	}
	return nil
}

// explained puts better messages for fields that are none.
func (o operations[T, L]) explained(p *api.Problem) *api.Problem {
	for i := range p.Errors {
		if o.Unknown == nil {
			break
		}
		if message, ok := o.Unknown(p.Errors[i].Field); ok {
			p.Errors[i].Message = message
		}
	}
	return p
}

func (o operations[T, L]) write(ctx context.Context, doc T, cond api.Precondition, dryRun bool) (*written[T], error) {
	key := *o.ID(&doc)
	stored, err := o.store.Apply(ctx, store.Write{
		Entity: o.Entity, Key: key, Actor: api.Actor(ctx), Cond: cond, Then: o.Then, DryRun: dryRun,
		Build: func(current []byte, version int64) ([]byte, error) {
			*o.Version(&doc) = version
			if err := o.keepsNames(current, doc); err != nil {
				return nil, err
			}
			if o.Carry != nil {
				if err := o.Carry(current, &doc, o.store.Now()); err != nil {
					return nil, err
				}
			}
			return json.Marshal(doc)
		},
	})
	switch {
	case err != nil && o.Refused != nil:
		return nil, o.Refused(ctx, doc, err)
	case err != nil:
		return nil, err
	}
	shown, err := Show[T](stored)
	if err != nil {
		return nil, err
	}
	out := &written[T]{ETag: shown.ETag, Status: shown.Status, Body: shown.Body}
	if cond.Create {
		out.Status, out.Location = http.StatusCreated, o.Path+"/"+url.PathEscape(key)
	}
	if dryRun {
		out.DryRun, out.ETag = dryRunMark(true), "" // no version of this number will be there to match
	}
	return out, nil
}

func (o operations[T, L]) remove(ctx context.Context, in *struct {
	api.KeyInput
	api.MatchInput
	DryRunInput
}) (*deleted, error) {
	err := Delete(ctx, o.store, store.Write{Entity: o.Entity, Key: in.ID, Then: o.Then, DryRun: in.DryRun}, in.MatchInput)
	return &deleted{DryRun: dryRunMark(in.DryRun)}, err
}

// Delete soft-deletes the row of w under its precondition.
func Delete(ctx context.Context, s *store.Store, w store.Write, in api.MatchInput) error {
	cond, p := api.ParsePrecondition(in.IfMatch, in.IfNoneMatch, false)
	if p != nil {
		return p
	}
	w.Actor, w.Cond = api.Actor(ctx), cond
	_, err := s.Apply(ctx, w)
	return err
}
