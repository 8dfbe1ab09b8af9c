package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/libs/strictjson"
)

// step is what is to be done to one rule or service.
type step[T any] struct {
	action action
	key    string
	where  string // the document it comes from, empty for a deletion
	after  T
	etag   string // of what was compared
	fields []fieldChange
}

type action byte

const (
	create    action = '+'
	update    action = '~'
	unchanged action = '='
	remove    action = '-'
)

func (a action) word() string {
	return map[action]string{create: "create", update: "update", unchanged: "unchanged", remove: "delete"}[a]
}

// wanted is a checked document.
type wanted[T any] struct {
	where string
	value T
	// version is the one that the document was got with; 0 where it names none,
	// and is written over whatever is there.
	version int64
}

// reword may replace the mistakes that were found in a document by better ones.
type reword func(document, []strictjson.FieldError) []strictjson.FieldError

// decodeAll checks every document, and that none is there twice, nor what each
// has to itself. All mistakes of all files are in the error, a line each.
func (k kind[T]) decodeAll(documents []document, better reword) (map[string]wanted[T], error) {
	out := make(map[string]wanted[T], len(documents))
	owners := make(map[string]string) // where what is to itself was written
	var mistakes []string
	for _, d := range documents {
		value, found := k.decode(d)
		if len(found) > 0 && better != nil {
			found = better(d, found)
		}
		for _, m := range found {
			mistakes = append(mistakes, d.at(m.Field)+": "+m.String())
		}
		if len(found) > 0 {
			continue
		}
		key, version := *k.key(&value), *k.version(&value)
		*k.version(&value) = 0
		if first, twice := out[key]; twice {
			mistakes = append(mistakes, fmt.Sprintf("%s: %s %q is in %s too", d.where(), k.noun, key, first.where))
			continue
		}
		if k.own != nil {
			field, own := k.own(value)
			if first, twice := owners[own]; twice {
				mistakes = append(mistakes, fmt.Sprintf("%s: %s: %q is in %s too; each %s has its own", d.at(field), field, own, first, k.noun))
			}
			owners[own] = d.at(field)
		}
		out[key] = wanted[T]{d.where(), value, version}
	}
	if len(mistakes) > 0 {
		return nil, nothingChanged(mistakes)
	}
	return out, nil
}

// nothingChanged refuses all files for the mistakes in some, a line each.
func nothingChanged(mistakes []string) error {
	return errors.New("nothing was changed:\n  " + strings.Join(mistakes, "\n  "))
}

// plan compares what should be with what is. Steps are in the order of their
// keys, deletions last, so that a failed write leaves more in force, not less.
// A document that was got before somebody else's change would undo that
// unseen, and is refused.
func (k kind[T]) plan(want map[string]wanted[T], have []T, prune bool) ([]step[T], error) {
	var steps []step[T]
	var stale []string
	there := make(map[string]bool, len(have))
	for _, before := range have {
		key, version := *k.key(&before), *k.version(&before)
		there[key] = true
		etag := fmt.Sprintf("%q", fmt.Sprint(version))
		w, keep := want[key]
		if !keep {
			if prune && (k.owned == nil || !k.owned(before)) {
				steps = append(steps, step[T]{action: remove, key: key, etag: etag})
			}
			continue
		}
		before = k.normalize(before) // an older server may have stored fewer defaults
		*k.version(&before) = 0
		fields, err := diff(before, w.value)
		if err != nil {
			return nil, err
		}
		s := step[T]{action: update, key: key, where: w.where, after: w.value, etag: etag, fields: fields}
		switch {
		case len(fields) == 0:
			s.action = unchanged
		case w.version != 0 && w.version != version:
			stale = append(stale, fmt.Sprintf("%s: version: %s %q is at version %d, and was changed since version %d, which this document gives: get it again, or leave version out to write over it",
				w.where, k.noun, key, version, w.version))
		}
		steps = append(steps, s)
	}
	if len(stale) > 0 {
		return nil, nothingChanged(stale)
	}
	for key, w := range want {
		if !there[key] {
			steps = append(steps, step[T]{action: create, key: key, where: w.where, after: w.value})
		}
	}
	slices.SortFunc(steps, func(a, b step[T]) int {
		return cmp.Or(cmp.Compare(a.action.rank(), b.action.rank()), strings.Compare(a.key, b.key))
	})
	return steps, nil
}

// rank puts deletions last.
func (a action) rank() int {
	if a == remove {
		return 1
	}
	return 0
}
