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

// limits is a document some of whose fields depend on others.
type limits struct {
	Metric    string `json:"metric"`
	Unlimited bool   `json:"unlimited"`
	Limit     struct {
		Kind  string `json:"kind"`
		Limit *int64 `json:"limit"`
		Burst *int64 `json:"burst"`
	} `json:"limit"`
}

func dependent(l limits) (found []strictjson.FieldError) {
	add := func(wrong bool, field, message string) {
		if wrong {
			found = append(found, strictjson.FieldError{Field: field, Message: message})
		}
	}
	n, burst := l.Limit.Limit, l.Limit.Burst
	add(l.Metric == "", "metric", "must be 1 to 64 letters")
	add(n == nil && !l.Unlimited, "limit.limit", "must be given, or unlimited must be true")
	add(n != nil && *n == 0 && burst != nil, "limit.burst", "must be left out where limit is 0")
	add(l.Limit.Kind == "" && burst != nil && *burst > 5, "limit.burst", "must be at most 5")
	return found
}

// A value that is given and not known is no cause for mistakes of others.
func TestJudgeTellsNothingThatFollows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{"metric":"m","limit":{"limit":0,"burst":1}}`:             {"limit.burst"},
		`{"metric":"m","limit":{"limit":"600","burst":1}}`:         {"limit.limit"},
		`{"metric":"m","limit":{"limit":6.5,"burst":1}}`:           {"limit.limit"},
		`{"metric":"","limit":{"limit":6.5,"burst":1}}`:            {"limit.limit", "metric"},
		`{"metrik":"m","limit":{"limit":0,"burst":1}}`:             {"metrik", "limit.burst"},
		`{"metric":"m","limit":{"limt":600,"burst":1}}`:            {"limit.limt"},
		`{"metric":"m","limits":{"limit":600}}`:                    {"limits"},
		`{"metric":"m","limit":{"limit":"6","burst":9}}`:           {"limit.limit", "limit.burst"},
		`{"metric":"m","limit":{"kind":7,"limit":6,"burst":9}}`:    {"limit.kind"},
		`{"metric":"m","limit":{"kynd":"a","limit":6,"burst":9}}`:  {"limit.kynd"},
		`{"metric":"m","unlimited":"yes"}`:                         {"unlimited"},
		`{"metric":"m","unlimitd":true}`:                           {"unlimitd"},
		`{"metric":"m","colour":1,"limit":{"limit":0,"burst":1}}`:  {"colour", "limit.burst"},
		`{"metric":"m","limit":{"colour":1,"limit":0,"burst":1}}`:  {"limit.colour", "limit.burst"},
		`{"metric":7,"unlimited":true,"limit":{"burst":1}}`:        {"metric"},
		`{"metric":7,"unlimited":false,"limit":{"burst":1,"x":0}}`: {"metric", "limit.x", "limit.limit"},
	} {
		var l limits
		var got []string
		for _, e := range strictjson.Judge([]byte(text), &l, dependent) {
			got = append(got, e.Field)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
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
