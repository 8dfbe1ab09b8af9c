package history

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/schemas/events/usage"
	"github.com/sluice-platform/sluice/services/controlplane/internal/api"
)

// UsageReader answers what was decided. usagestore.Store is one.
type UsageReader interface {
	// Search returns a page, newest first; usagestore.ErrBadQuery for a cursor
	// that is none.
	Search(ctx context.Context, q usagestore.Query) (usagestore.Page, error)
	// Get returns one event, or usagestore.ErrNotFound.
	Get(ctx context.Context, id string) (usage.Event, error)
	// Days sums charges by day and counter; usagestore.ErrBadQuery for a span
	// that is none.
	Days(ctx context.Context, q usagestore.DaysQuery) ([]usagestore.DaySum, error)
}

// Reader reads the usage store, and turns its errors into problems.
type Reader struct {
	UsageReader
	Log *slog.Logger
}

// Problem reads the store's sentinels. Whatever else goes wrong there is
// the store's trouble, and may pass.
func (r Reader) Problem(ctx context.Context, err error) *api.Problem {
	switch {
	case errors.Is(err, usagestore.ErrNotFound):
		return api.NewProblem(http.StatusNotFound, "not-found", "there is no such decision; one just made appears within seconds")
	case errors.Is(err, usagestore.ErrBadQuery):
		return api.Invalid(api.InQuery("cursor", "must be the next of an earlier page of this query"))
	}
	r.Log.WarnContext(ctx, "usage store unavailable", "error", err)
	return api.Unavailable("the usage store cannot be reached")
}
