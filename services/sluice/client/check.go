package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"
)

// check has the control plane try every change of a plan, and says whether all
// would be taken. All refusals are in the error, a line each; it ends early
// only where no answer is about the change itself: nobody there, no right to.
func (k kind[T]) check(ctx context.Context, c *rest.Connection, steps []step[T], out io.Writer) error {
	changes := 0
	var refused []string
	for i, s := range steps {
		if s.action == unchanged {
			continue
		}
		changes++
		err := k.perform(ctx, c, s, true)
		var answer *rest.AnswerError
		switch {
		case err == nil:
		case !errors.As(err, &answer) || !aboutRequest(answer):
			return fmt.Errorf("nothing was changed: try to %s %s %q: %w", s.action.word(), k.noun, s.key, err)
		case answer.Status == http.StatusConflict && k.freed(s.after, steps[:i]):
		default:
			refused = append(refused, fmt.Sprintf("%s %s %q: %v", s.action.word(), k.noun, s.key, err))
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("nothing was changed, since the control plane would refuse %d of %d changes:\n  %s",
			len(refused), changes, strings.Join(refused, "\n  "))
	}
	if changes > 0 {
		fmt.Fprintf(out, "checked by the control plane, which would take every change: %d of %d\n", changes, changes)
	}
	return nil
}

// freed tells that what after needs to itself is given away by a step before
// it: the control plane, which tries each change alone, refuses it only until then.
func (k kind[T]) freed(after T, before []step[T]) bool {
	if k.own == nil {
		return false
	}
	field, value := k.own(after)
	return slices.ContainsFunc(before, func(s step[T]) bool {
		return s.action == update && slices.ContainsFunc(s.fields, func(f fieldChange) bool {
			return f.path == field && f.before == strconv.Quote(value)
		})
	})
}

// unchecked tells a token that may read only: with it a plan can be printed, as
// ever, but not tried.
func unchecked(err error) bool {
	var answer *rest.AnswerError
	return errors.As(err, &answer) && answer.Status == http.StatusForbidden
}

// aboutRequest tells answers that say something of this request, and not of
// every one: another may well be taken.
func aboutRequest(e *rest.AnswerError) bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusTooManyRequests:
		return false
	}
	return e.Status >= 400 && e.Status < 500
}
