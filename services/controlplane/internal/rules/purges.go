package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
	"github.com/sluice-platform/sluice/services/controlplane/internal/store"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/schemas/events/purges"
)

// NewPurge is what a purge is made from.
type NewPurge struct {
	Service string `json:"service" doc:"Name of a service of the catalog."`
	URL     string `json:"url,omitempty" doc:"A path as clients ask for it, such as /shop/item?id=4711, on every host; without a query all answers of the path."`
	Prefix  string `json:"prefix,omitempty" doc:"The beginning of paths, such as /shop/."`
	Tag     string `json:"tag,omitempty" doc:"A tag that the service gave its answers (tagsHeader of its cache setting)."`
	All     bool   `json:"all,omitempty" doc:"true: every answer of the service."`
}

func (s *Handlers) registerPurges(a *api.API) {
	tags := []string{"purges"}
	api.Register(a, huma.Operation{OperationID: "create-purge", Method: http.MethodPost, Path: "/v1/purges", Tags: tags,
		Summary: "Purge stored answers: one URL, a prefix, a tag, or all of a service",
		Description: "Give exactly one of url, prefix, tag and all. What is stored until now is never served again by a gateway that has heard of the purge, " +
			"also while the service is down; gateways that are away hear of it before they serve anything stored. The same purge again reaches what was stored since.",
		DefaultStatus: http.StatusAccepted}, reflect.TypeFor[NewPurge](), s.createPurge)
	api.Register(a, huma.Operation{OperationID: "list-purges", Method: http.MethodGet, Path: "/v1/purges", Tags: tags,
		Summary: "List the purges of the last days, by id"}, nil, s.listPurges)
}

func (s *Handlers) createPurge(ctx context.Context, _ *struct{}) (*api.Document[purges.Purge], error) {
	var in NewPurge
	if p := api.Decode(ctx, &in); p != nil {
		return nil, p
	}
	if found := in.check(); len(found) > 0 {
		return nil, api.Invalid(found...)
	}
	purge := purges.Purge{Service: in.Service, URL: in.URL, Prefix: in.Prefix, Tag: in.Tag, All: in.All}
	purge.ID = purge.Target()
	stored, err := s.store.Apply(ctx, store.Write{
		Entity: store.Purges, Key: purge.ID, Actor: api.Actor(ctx), Cond: api.Precondition{Either: true},
		Build: func(_ []byte, version int64) ([]byte, error) {
			purge.Version, purge.At = version, s.store.Now().UTC().Truncate(time.Millisecond)
			return json.Marshal(purge)
		},
		Then: func(ctx context.Context, tx pgx.Tx, _, _ store.Record) error {
			if err := in.reaches(ctx, tx); err != nil {
				return err
			}
			return retirePurges(ctx, tx, s.store)
		},
	})
	if err != nil {
		return nil, err
	}
	out := &api.Document[purges.Purge]{ETag: api.ETag(stored.Version), Status: http.StatusAccepted}
	if err := json.Unmarshal(stored.Document, &out.Body); err != nil {
		return nil, fmt.Errorf("decode stored purge: %w", err)
	}
	return out, nil
}

// reaches refuses what no answer can be stored of: a purge that was misspelt must
// not seem to have worked.
func (in *NewPurge) reaches(ctx context.Context, tx pgx.Tx) error {
	var under string
	err := tx.QueryRow(ctx, `SELECT document->>'prefix' FROM catalog WHERE key = $1 AND document IS NOT NULL`, in.Service).Scan(&under)
	if errors.Is(err, pgx.ErrNoRows) {
		return api.Invalid(api.InBody("service", "must be the name of a service of the catalog"))
	}
	if err != nil {
		return fmt.Errorf("read catalog: %w", err)
	}
	if in.URL != "" && !strings.HasPrefix(in.path()+"/", under) {
		return api.Invalid(api.InBody("url", fmt.Sprintf("must lie under the prefix of the service, %s", under)))
	}
	if in.Prefix != "" && !strings.HasPrefix(in.Prefix, under) && !strings.HasPrefix(under, in.Prefix) {
		return api.Invalid(api.InBody("prefix", fmt.Sprintf("must lie under the prefix of the service, %s", under)))
	}
	return nil
}

// path is the URL's as requests are matched by, empty where there is none.
func (in *NewPurge) path() string {
	path, _, _ := strings.Cut(in.URL, "?")
	clean, _ := route.CleanPath(path)
	return clean
}

// retiredAtOnce bounds what one purge cleans up; each makes one, so that there
// are never many more than those of the retention.
const retiredAtOnce = 20

// retirePurges deletes purges that no stored answer can be older than.
func retirePurges(ctx context.Context, tx pgx.Tx, s *store.Store) error {
	rows, err := tx.Query(ctx, `SELECT key FROM purges WHERE document IS NOT NULL AND updated_at < $1
		ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED`, s.Now().Add(-purges.Retention), retiredAtOnce)
	if err != nil {
		return fmt.Errorf("find old purges: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find old purges: %w", err)
	}
	for _, key := range keys {
		if _, err := s.ApplyIn(ctx, tx, store.Write{Entity: store.Purges, Key: key, Actor: "retention", Cond: api.Precondition{Any: true}}); err != nil {
			return fmt.Errorf("retire purge: %w", err)
		}
	}
	return nil
}

// Bounds of a purge.
const (
	maxPurgePath = 2048 // bytes
	maxPurgeTag  = 256
)

func (in *NewPurge) check() []api.FieldError {
	var found []api.FieldError
	add := func(field, message string) { found = append(found, api.InBody(field, message)) }
	if in.Service == "" {
		add("service", "must be the name of a service of the catalog")
	}
	given := 0
	for _, is := range []bool{in.URL != "", in.Prefix != "", in.Tag != "", in.All} {
		if is {
			given++
		}
	}
	if given != 1 {
		add("", "must have exactly one of url, prefix, tag and all")
	}
	for field, path := range map[string]string{"url": in.URL, "prefix": in.Prefix} {
		if path != "" && (!strings.HasPrefix(path, "/") || len(path) > maxPurgePath || strings.ContainsAny(path, "# \t") || !utf8.ValidString(path)) {
			add(field, fmt.Sprintf("must be a path that begins with /, of at most %d bytes, percent-escaped as in a URL, without a host", maxPurgePath))
		}
	}
	if strings.Contains(in.Prefix, "?") {
		add("prefix", "must be the beginning of a path, without a query")
	}
	if in.URL != "" && in.path() == "" {
		add("url", "must be a path that begins with /, with two hexadecimal digits behind each %")
	}
	// Answers are stored under clean paths: another spelling would reach none.
	if clean, err := route.CleanPath(in.Prefix); in.Prefix != "" && (err != nil || clean != in.Prefix) {
		add("prefix", "must be spelt as a clean path: without . and .. segments, and escaped, in capitals, where it must be alone")
	}
	if in.Tag != "" && (len(in.Tag) > maxPurgeTag || strings.ContainsAny(in.Tag, ", \t")) {
		add("tag", fmt.Sprintf("must be one tag of at most %d bytes, without comma or space", maxPurgeTag))
	}
	return found
}

// purgeList narrows the list of purges.
type purgeList struct {
	api.PageInput
	Service string `query:"service" doc:"Only purges of this service."`
}

func (s *Handlers) listPurges(ctx context.Context, in *purgeList) (*struct{ Body api.Page[purges.Purge] }, error) {
	records, next, err := s.store.Page(ctx, store.Purges, []store.Filter{{Where: `document->>'service' = $%d`, Value: in.Service}}, in.PageInput)
	if err != nil {
		return nil, err
	}
	items, err := store.DecodeAll[purges.Purge](records)
	return &struct{ Body api.Page[purges.Purge] }{api.Page[purges.Purge]{Items: items, Next: next}}, err
}
