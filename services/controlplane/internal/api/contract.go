package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Config is what an API is made of.
type Config struct {
	// Title, Version and About head the contract.
	Title, Version, About string
	// Tokens are who may call.
	Tokens []Token
	// RequestTimeout bounds the work on one request, the database's included.
	RequestTimeout time.Duration
	// Observer counts requests.
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time
}

// Observer counts requests. Its methods are called from any goroutine and must
// not block.
type Observer interface {
	// Observe counts an answer. routed is nil where the request was refused
	// before it was routed.
	Observe(routed *http.Request, method string, status int, took time.Duration)
	// Panicked counts a request that panicked.
	Panicked()
}

// API is the REST surface: operations, the contract that describes them, and
// the chain that each request passes before its operation.
type API struct {
	cfg    Config
	tokens tokenTable
	mux    *http.ServeMux
	huma   huma.API
}

// New makes an API without operations.
func New(cfg Config) *API {
	a := &API{cfg: cfg, tokens: cfg.Tokens, mux: http.NewServeMux()}
	config := huma.DefaultConfig(cfg.Title, cfg.Version)
	config.Info.Description = cfg.About
	config.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil // else documents gain $schema, and could not be PUT back
	config.RejectUnknownQueryParameters = true
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer", Description: "A token of role admin, or readonly for GET."},
	}
	config.Security = []map[string][]string{{"token": {}}}
	a.huma = humago.New(a.mux, config)
	return a
}

// Contract is the OpenAPI document of what is registered.
func (a *API) Contract() *huma.OpenAPI { return a.huma.OpenAPI() }

// Register adds an operation. Its body is only described to huma, after it
// has built its handler: readBody has read it by then, and handlers decode it
// strictly, which huma does not.
func Register[I, O any](a *API, op huma.Operation, body reflect.Type, handle func(context.Context, *I) (*O, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err != nil {
			return nil, a.problemOf(ctx, err)
		}
		return out, nil
	})
	described := operationAt(a.Contract().Paths[op.Path], op.Method)
	describeResponses(described)
	if body == nil {
		return
	}
	schema := a.Contract().Components.Schemas.Schema(body, true, "")
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

// Publish serves the contract and its page, health, and an answer to unknown
// paths. The documents are made here, once: huma would make them at the first
// request, without a lock.
func (a *API) Publish() error {
	doc := a.Contract()
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
	a.mux.HandleFunc("GET /openapi.json", static("application/openapi+json", asJSON))
	a.mux.HandleFunc("GET /openapi.yaml", static("application/openapi+yaml", asYAML))
	a.mux.HandleFunc("GET /docs", static("text/html; charset=utf-8", page))
	a.mux.HandleFunc("GET /healthz", health)
	a.mux.Handle("GET /{$}", http.RedirectHandler("/docs", http.StatusFound))
	a.mux.HandleFunc("/", a.fallback)
	return nil
}

func static(mediaType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		_, _ = w.Write(body) // the client is gone, and nobody else to tell
	}
}
