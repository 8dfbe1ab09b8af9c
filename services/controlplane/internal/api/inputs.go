package api

import (
	"context"
	"time"
)

// PageInput is what every list takes. It and the like are exported because
// huma reads embedded structs only then.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"How many items at most."`
	Cursor string `query:"cursor" doc:"The next of the page before; absent for the first page."`
}

// Paging returns the page; lists that embed it are told apart by what narrows them.
func (p PageInput) Paging() PageInput { return p }

// Page is one page of a list.
type Page[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"Cursor of the next page; absent on the last."`
}

// KeyInput names one item; net/http has resolved its percent escapes.
type KeyInput struct {
	ID string `path:"id" doc:"The id (of a service: its name), percent-escaped."`
}

// MatchInput is what every change of an existing resource takes. If-None-Match
// is read to be refused.
type MatchInput struct {
	IfMatch     string `header:"If-Match" doc:"The ETag that GET answered, or * for any version. Without it: 428."`
	IfNoneMatch string `header:"If-None-Match" hidden:"true"`
}

// ChangeInput is what a change of one item takes.
type ChangeInput struct {
	KeyInput
	MatchInput
}

// PutInput is what a PUT takes that may create.
type PutInput struct {
	IfMatch     string `header:"If-Match" doc:"The ETag that GET answered, or * for any version. Without it and If-None-Match: 428."`
	IfNoneMatch string `header:"If-None-Match" doc:"In place of If-Match: * creates, if there is none yet."`
}

// SpanInput is a stretch of time in a query.
type SpanInput struct {
	From time.Time `query:"from" doc:"From this time on (RFC 3339)."`
	To   time.Time `query:"to" doc:"Before this time (RFC 3339)."`
}

// Check refuses a stretch that holds nothing. Whether the beginning of year 1 is
// given only the query tells: it is the zero time, which stands for none.
func (in SpanInput) Check(ctx context.Context) *Problem {
	switch {
	case in.To.IsZero() && callOf(ctx).routed.URL.Query().Get("to") != "":
		return Invalid(FieldError{"query", "to", "must be after " + Instant(time.Time{}) + ", or be left out"})
	case !in.From.IsZero() && !in.To.IsZero() && !in.From.Before(in.To):
		return Invalid(FieldError{"query", "to", "must be after from"})
	}
	return nil
}

// Document is the answer that carries one resource.
type Document[T any] struct {
	ETag     string `header:"ETag" doc:"The version, for If-Match."`
	Location string `header:"Location" doc:"Where the resource is, after it was created."`
	Status   int
	Body     T
}
