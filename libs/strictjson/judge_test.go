package strictjson_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sluice-platform/sluice/libs/strictjson"
)

// strict refuses a document of nothing, field by field.
func strict(d document) (found []strictjson.FieldError) {
	for field, missing := range map[string]bool{"id": d.ID == "", "count": d.Count == nil, "part.name": d.Part.Name == "", "at": d.At == nil} {
		if missing {
			found = append(found, strictjson.FieldError{Field: field, Message: "must be given"})
		}
	}
	return found
}

// Mistakes of form and of meaning are told at once, and none for another's sake.
func TestJudgeTellsAllMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{"id":"a","count":1,"part":{"name":"x"},"at":"2026-07-23T14:32:07Z"}`:           nil,
		`{"id":"a","count":1,"part":{"name":"x"}}`:                                       {"at"},
		`{"id":7,"part":{"name":"x"}}`:                                                   {"at", "count", "id"},
		`{"id":"a","count":"1","part":{"name":""},"at":"2026-07-23T14:32:07Z"}`:          {"count", "part.name"},
		`{"id":"a","count":1,"part":[],"at":"2026-07-23T14:32:07Z"}`:                     {"part"},
		`{"id":"","count":1,"colour":1,"part":{"name":"x"},"at":"2026-07-23T14:32:07Z"}`: {"colour", "id"},
		`{"at":"yesterday","id":""}`:                                                     {"at"}, // the rest was not read
		`[]`:                                                                             {""},
		`{`:                                                                              {""},
	} {
		var d document
		var got []string
		for _, e := range strictjson.Judge([]byte(text), &d, strict) {
			got = append(got, e.Field)
		}
		if slices.Sort(got); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
