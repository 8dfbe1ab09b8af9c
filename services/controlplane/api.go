package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// APIVersion is the version of the contract in the OpenAPI document.
const APIVersion = "1.0.0"

// Spec returns the OpenAPI document as YAML, as it is served and as it is
// kept in schemas/openapi.
func Spec() ([]byte, error) {
	s := &Service{mux: http.NewServeMux()}
	return s.registerAll().OpenAPI().YAML()
}

// routes registers everything that is served. The documents are made here,
// once: huma would make them at the first request, without a lock.
func (s *Service) routes() error {
	doc := s.registerAll().OpenAPI()
	asJSON, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("encode OpenAPI document: %w", err)
	}
	asYAML, err := doc.YAML()
	if err != nil {
		return fmt.Errorf("encode OpenAPI document: %w", err)
	}
	page, err := renderDocs(doc)
	if err != nil {
		return fmt.Errorf("render docs: %w", err)
	}
	s.mux.HandleFunc("GET /openapi.json", static("application/openapi+json", asJSON))
	s.mux.HandleFunc("GET /openapi.yaml", static("application/openapi+yaml", asYAML))
	s.mux.HandleFunc("GET /docs", static("text/html; charset=utf-8", page))
	s.mux.HandleFunc("GET /healthz", health)
	s.mux.Handle("GET /{$}", http.RedirectHandler("/docs", http.StatusFound))
	s.mux.HandleFunc("/", s.fallback)
	return nil
}

func static(mediaType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		_, _ = w.Write(body) // the client is gone, and nobody else to tell
	}
}

func (s *Service) registerAll() huma.API {
	config := huma.DefaultConfig("Sluice control plane", APIVersion)
	config.Info.Description = apiAbout
	config.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil // else documents gain $schema, and could not be PUT back
	config.RejectUnknownQueryParameters = true
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "A token of role admin, or readonly for GET."},
	}
	config.Security = []map[string][]string{{"token": {}}}
	api := humago.New(s.mux, config)
	registerResource(s, api, s.ruleResource())
	registerResource(s, api, s.overrideResource())
	registerResource(s, api, s.serviceResource())
	registerResource(s, api, s.customerResource())
	s.registerCustomerList(api)
	s.registerCustomerUse(api)
	s.registerPortalLinks(api)
	registerResource(s, api, s.planResource())
	s.registerPlanVersions(api)
	s.registerMoves(api)
	s.registerSubscriptions(api)
	s.registerWallets(api)
	s.registerTopUps(api)
	s.registerKeys(api)
	s.registerWebhooks(api)
	s.registerPurges(api)
	s.registerInvoices(api)
	s.registerAudit(api)
	s.registerUsage(api)
	describe(api.OpenAPI().Components.Schemas)
	return api
}

// register adds an operation. Its body is only described to huma, after it
// has built its handler: readBody has read it by then, and handlers decode it
// strictly, which huma does not.
func register[I, O any](s *Service, api huma.API, op huma.Operation, body reflect.Type, handle func(context.Context, *I) (*O, error)) {
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, s.problemOf(ctx, err)
		}
		return out, nil
	})
	described := operationAt(api.OpenAPI().Paths[op.Path], op.Method)
	describeResponses(described)
	if body == nil {
		return
	}
	schema := api.OpenAPI().Components.Schemas.Schema(body, true, "")
	described.RequestBody = &huma.RequestBody{
		Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: schema}},
	}
}

func operationAt(item *huma.PathItem, method string) *huma.Operation {
	switch method {
	case http.MethodGet:
		return item.Get
	case http.MethodDelete:
		return item.Delete
	case http.MethodPost:
		return item.Post
	case http.MethodPut:
		return item.Put
	default:
		return item.Patch
	}
}

// PageInput is what every list takes. It and the like are exported because
// huma reads embedded structs only then.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"How many items at most."`
	Cursor string `query:"cursor" doc:"The next of the page before; absent for the first page."`
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"Cursor of the next page; absent on the last."`
}

// MatchInput is what every change of an existing resource takes. If-None-Match
// is read to be refused.
type MatchInput struct {
	IfMatch     string `header:"If-Match" doc:"The ETag that GET answered, or * for any version. Without it: 428."`
	IfNoneMatch string `header:"If-None-Match" hidden:"true"`
}

// PutInput is what a PUT takes that may create.
type PutInput struct {
	IfMatch     string `header:"If-Match" doc:"The ETag that GET answered, or * for any version. Without it and If-None-Match: 428."`
	IfNoneMatch string `header:"If-None-Match" doc:"In place of If-Match: * creates, if there is none yet."`
}

// document is the answer that carries one resource.
type document[T any] struct {
	ETag     string `header:"ETag" doc:"The version, for If-Match."`
	Location string `header:"Location" doc:"Where the resource is, after it was created."`
	Status   int
	Body     T
}
