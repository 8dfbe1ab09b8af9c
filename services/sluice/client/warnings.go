package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/sluice-platform/sluice/libs/strictjson"
)

// warning is what the control plane finds valid and yet likely a mistake.
type warning struct{ ID, Message string }

// warned is the part of an answer that holds warnings.
type warned struct{ Warnings []warning }

func (w warned) print(to io.Writer) {
	for _, one := range w.Warnings {
		fmt.Fprintln(to, "warning: "+one.Message)
	}
}

// maxJudged bounds the documents that are judged in one call, in bytes: a body
// may have 1 MiB.
const maxJudged = 900 << 10

// warnOfAll prints the warnings about documents that were applied, or tried, each
// judged beside the others. They change nothing, and neither does a failure to
// get them; a token that may read only gets none.
func (k kind[T]) warnOfAll(ctx context.Context, c *rest.Connection, applied []T, to io.Writer) {
	if !k.warns {
		return
	}
	for len(applied) > 0 {
		items, size := []json.RawMessage{}, 0
		for size < maxJudged && len(items) < len(applied) {
			data, err := json.Marshal(applied[len(items)])
			if err != nil {
				return
			}
			items, size = append(items, data), size+len(data)
		}
		applied = applied[len(items):]
		var answer warned
		err := c.Do(ctx, rest.Call{Method: http.MethodPost, Path: k.warningsPath(), Body: map[string]any{"items": items}, Into: &answer})
		if err != nil && !unchecked(err) {
			fmt.Fprintf(to, "warning: could not look for mistakes in the %ss: %v\n", k.noun, err)
		}
		answer.print(to)
	}
}

// warnOfStored prints the warnings about documents that were listed.
func (k kind[T]) warnOfStored(ctx context.Context, c *rest.Connection, listed []T, to io.Writer) {
	if !k.warns || len(listed) == 0 {
		return
	}
	var answer warned
	if err := c.Do(ctx, rest.Call{Method: http.MethodGet, Path: k.warningsPath(), Into: &answer}); err != nil {
		fmt.Fprintf(to, "warning: could not look for mistakes in the %ss: %v\n", k.noun, err)
	}
	shown := make(map[string]bool, len(listed))
	for _, v := range listed {
		shown[*k.key(&v)] = true
	}
	for _, w := range answer.Warnings {
		if shown[w.ID] {
			warned{[]warning{w}}.print(to)
		}
	}
}

func (k kind[T]) warningsPath() string { return strings.Replace(k.path, "/v1/", "/v1/warnings/", 1) }

// wrongKind asks the control plane about a document with mistakes: where it was
// written for another kind, that is its one mistake.
func (k kind[T]) wrongKind(ctx context.Context, c *rest.Connection) reword {
	return func(d document, found []strictjson.FieldError) []strictjson.FieldError {
		if !json.Valid(d.data) {
			return found
		}
		var answer *rest.AnswerError
		err := c.Do(ctx, rest.Call{Method: http.MethodPost, Path: k.path + "?dryRun=true", Body: json.RawMessage(d.data)})
		if errors.As(err, &answer) && answer.Problem == "urn:sluice:problem:wrong-kind" {
			return []strictjson.FieldError{{Message: answer.Detail}}
		}
		return found
	}
}
