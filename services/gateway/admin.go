package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/purges"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/services/gateway/internal/explain"
	"github.com/sluice-platform/sluice/services/gateway/internal/identify"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// tableView is what operators and tests see of a table. It shows keys and
// stamps, never values.
type tableView struct {
	Ready      bool   `json:"ready"`
	Generation int64  `json:"generation"`
	Count      int64  `json:"count"`
	Digest     string `json:"digest"`
	// AgeSeconds is the time since the newest mirror record that the table
	// equalled; absent before the first.
	AgeSeconds *float64          `json:"age,omitempty"`
	Trouble    string            `json:"trouble,omitempty"`
	Bad        map[string]string `json:"bad,omitempty"`
	// Unread are those of them of which no version could be read.
	Unread  []string    `json:"unread,omitempty"`
	Entries []entryView `json:"entries"`
}

// entryView is one live key; times in µs since the Unix epoch, 0 is unknown.
type entryView struct {
	Key         string `json:"key"`
	Generation  int64  `json:"generation"`
	Version     int64  `json:"version"`
	CommittedAt int64  `json:"committedAt"`
	RelayedAt   int64  `json:"relayedAt"`
	AppliedAt   int64  `json:"appliedAt"`
}

// RootAdminRoutes implements service.RootAdminHandler.
func (s *Service) RootAdminRoutes() []string {
	return []string{explain.Pattern, openPattern, releasePattern}
}

// AdminRoutes implements service.AdminHandler: GET /tables/{topic}, with ?key=
// for one entry alone, POST /v1/explain, and the list and release of reservations.
func (s *Service) AdminRoutes(mux *http.ServeMux) {
	mux.Handle(explain.Pattern, s.explainer)
	mux.Handle(openPattern, s.lister)
	mux.Handle(releasePattern, s.releaser)
	mux.HandleFunc("GET /tables/{topic}", func(w http.ResponseWriter, r *http.Request) {
		key, one := r.URL.Query().Get("key"), r.URL.Query().Has("key")
		var view tableView
		switch r.PathValue("topic") {
		case rules.Topic:
			view = viewTable(s.tables.rules, key, one)
		case overrides.Topic:
			view = viewTable(s.tables.overrides, key, one)
		case catalog.Topic:
			view = viewTable(s.tables.catalog, key, one)
		case keys.Topic:
			view = viewTable(s.tables.keys, key, one)
		case purges.Topic:
			view = viewTable(s.tables.purges, key, one)
		case grants.Topic:
			view = viewTable(s.tables.grants, key, one)
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		// A client that went away is not our error.
		_ = json.NewEncoder(w).Encode(view)
	})
}

func viewTable[V any](t *stream.Table[V], key string, one bool) tableView {
	state := t.State()
	view := tableView{
		Ready: state.Ready, Generation: state.Generation, Count: state.Count, Digest: state.Digest,
		Trouble: state.Trouble, Bad: state.Bad, Unread: state.Unread, Entries: []entryView{},
	}
	const longest = 1 << 62 // Age before any mirror record is longer than this
	if age := t.Age(); age < longest {
		seconds := age.Seconds()
		view.AgeSeconds = &seconds
	}
	if one {
		if e, ok := t.Get(key); ok {
			view.Entries = append(view.Entries, viewEntry(key, e))
		}
		return view
	}
	for k, e := range t.Snapshot() {
		view.Entries = append(view.Entries, viewEntry(k, e))
	}
	slices.SortFunc(view.Entries, func(a, b entryView) int { return strings.Compare(a.Key, b.Key) })
	return view
}

func viewEntry[V any](key string, e stream.Entry[V]) entryView {
	return entryView{
		Key: key, Generation: e.Generation, Version: e.Version,
		CommittedAt: micros(e.CommittedAt), RelayedAt: micros(e.RelayedAt), AppliedAt: micros(e.AppliedAt),
	}
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// newExplainer ties the answers of POST /v1/explain to the code that requests go
// through.
func newExplainer(g *gate, index *rule.Index, t *tables, operators identify.Operators) *explain.Explainer {
	return explain.New(explain.Options{
		Index: index, Ready: t.ready, Unread: func() []string { return t.rules.State().Unread },
		Key: func(id string) (*identify.Key, bool) {
			e, ok := t.keys.Get(id)
			return e.Value, ok
		},
		Service: func(name string) (*routing.Service, bool) {
			e, ok := t.catalog.Get(name)
			return e.Value, ok
		},
		Routes: g.routes, Admission: &g.admission, Counter: g.counter, Store: g.charger.Store,
		Operators: operators, Now: g.now, Log: g.log,
	})
}
