package resource

import (
	"github.com/danielgtaylor/huma/v2"
)

// DryRunInput is what every change of a document takes that callers write
// whole.
type DryRunInput struct {
	DryRun bool `query:"dryRun" doc:"true: judge the request by everything the real one is judged by, and change nothing."`
}

// Resolve refuses the parameter without a value: huma would take it as absent,
// and write what was meant to be tried only.
func (DryRunInput) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	if values, given := u.Query()["dryRun"]; given && values[0] == "" {
		return []error{&huma.ErrorDetail{Location: "query.dryRun", Message: "must be true or false"}}
	}
	return nil
}

// dryRunMark is the header of an answer to a dry run, empty to any other.
func dryRunMark(dryRun bool) string {
	if dryRun {
		return "true"
	}
	return ""
}

// written is the answer to a write that may have been a dry run.
type written[T any] struct {
	ETag     string `header:"ETag" doc:"The version, for If-Match; left out of a dry run."`
	Location string `header:"Location" doc:"Where the resource is, after it was created."`
	DryRun   string `header:"Sluice-Dry-Run" doc:"true where this answers a dry run, and nothing was changed."`
	Status   int
	Body     answered[T]
}

// deleted is the answer to a deletion that may have been a dry run.
type deleted struct {
	DryRun string `header:"Sluice-Dry-Run" doc:"true where this answers a dry run, and nothing was changed."`
}
