package usagestore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

// Bounds of Query.Limit.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// Errors of Search and Get.
var (
	// ErrNotFound means that no event has the id.
	ErrNotFound = errors.New("usage event not found")
	// ErrBadQuery means that the caller gave a cursor or bound that is none.
	ErrBadQuery = errors.New("bad usage query")
)

// Store keeps usage events for search. All methods may be called
// concurrently.
type Store interface {
	// Put stores events and returns one result each, in their order. An error
	// means that nothing is known of any of them: all are put again.
	Put(ctx context.Context, events []usage.Event) ([]Result, error)
	// Search returns a page, newest first. What was just put may appear only
	// after the store's refresh interval (a second or so).
	Search(ctx context.Context, q Query) (Page, error)
	// Get returns the newest event with that id, or ErrNotFound.
	Get(ctx context.Context, id string) (usage.Event, error)
	// Totals sums what counters were charged, ordered by the counters' bytes.
	Totals(ctx context.Context, q TotalsQuery) (TotalsPage, error)
	// Days sums what a tenant's counters were charged each day, ordered by day
	// and counter.
	Days(ctx context.Context, q DaysQuery) ([]DaySum, error)
	// Prune deletes whole UTC days older than keepDays before now's, and
	// returns how many units the store deletes in (indices, rows) went.
	Prune(ctx context.Context, keepDays int, now time.Time) (n int, err error)
	// Ready returns nil when the store answers, else why it does not.
	Ready(ctx context.Context) error
}

// Result is the outcome of one event of a Put; a nil Err is stored, or was
// already.
type Result struct{ Err *ItemError }

// ItemError says why one event was not stored.
type ItemError struct {
	// Permanent means that the same event will be refused again.
	Permanent bool
	// Kind is the store's own word for it, such as document_parsing_exception.
	Kind string
	// Detail is for people; it may quote the event.
	Detail string
}

// Error implements error.
func (e *ItemError) Error() string {
	verb := "not stored now"
	if e.Permanent {
		verb = "refused"
	}
	return fmt.Sprintf("event %s: %s: %s", verb, e.Kind, e.Detail)
}

// Query selects events. Zero values select everything.
type Query struct {
	// TenantID and Decision are exact.
	TenantID, Decision string
	// From is inclusive, To is not.
	From, To time.Time
	// Limit is 1 to MaxLimit; 0 is DefaultLimit, more is cut to MaxLimit.
	Limit int
	// Cursor is Page.Next of the page before; it fits the same query only.
	Cursor string
}

// Page is one page of a search.
type Page struct {
	Events []usage.Event
	// Next is the cursor of the page after, empty on the last one.
	Next string
}
