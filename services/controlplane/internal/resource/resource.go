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

	"github.com/danielgtaylor/huma/v2"
	"github.com/sluice-platform/sluice/libs/strictjson"
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"
)

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
	if r.Warn != nil {
		o.registerWarnings(a)
	}
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
		if p := wrongKind(o.Item, api.Body(ctx)); p != nil {
			return doc, p
		}
		return doc, o.explained(api.Invalid(api.BodyErrors(found)...))
	}
	o.complete(&doc, key)
	return o.Normalize(doc), nil
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
	out := &written[T]{ETag: shown.ETag, Status: shown.Status, Body: answered[T]{shown.Body, o.warningsOf(ctx, []T{shown.Body})}}
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
