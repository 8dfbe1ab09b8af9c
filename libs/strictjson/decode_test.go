package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/strictjson"
)

type document struct {
	ID    string     `json:"id"`
	Count *int64     `json:"count,omitempty"`
	Rank  int        `json:"rank"`
	On    bool       `json:"on"`
	Part  part       `json:"part"`
	Parts []part     `json:"parts"`
	At    *time.Time `json:"at"`
}

type part struct {
	Name string `json:"name"`
}

func TestDecodeTakesAWholeDocument(t *testing.T) {
	t.Parallel()
	var d document
	found := strictjson.Decode([]byte(`{"id":"ä{}%","count":9007199254740993,"rank":-2,"on":true,
		"part":{"name":"x"},"parts":[{"name":"y"}],"at":"2026-07-23T14:32:07.5+03:00"}`), &d)
	if len(found) > 0 {
		t.Fatalf("found %v", found)
	}
	if d.ID != "ä{}%" || *d.Count != 9007199254740993 || d.Rank != -2 || !d.On || d.Part.Name != "x" || d.Parts[0].Name != "y" || d.At == nil {
		t.Fatalf("decoded %+v", d)
	}
}

func TestDecodeNamesEachMistake(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, body, field, says string }{
		{"empty", ``, "", "is empty"},
		{"spaces", "  \n", "", "is empty"},
		{"syntax", "{\n \"id\": }", "", "line 2, column 8"},
		{"cut off", `{"id":"a"`, "", "is not JSON"},
		{"trailing", `{"id":"a"} x`, "", "after top-level value"},
		{"two values", `{"id":"a"}{}`, "", "after top-level value"},
		{"array", `[]`, "", "must be an object, not an array"},
		{"null", `null`, "", "must be an object, not null"},
		{"UTF-8", "{\"id\":\"\xff\"}", "", "must be UTF-8, but byte 7"},
		{"NUL", `{"id":"a\u0000"}`, "id", "NUL"},
		{"unknown", `{"idd":"a"}`, "idd", "is not a field here; did you mean id? There are id, count"},
		{"unknown and near nothing", `{"colour":"a"}`, "colour", "is not a field here; there are id, count"},
		{"wrong case", `{"ID":"a"}`, "ID", "is not a field here; did you mean id?"},
		{"unknown below", `{"part":{"nam":1}}`, "part.nam", "is not a field here; did you mean name? There are name"},
		{"twice", `{"id":"a","id":"b"}`, "id", "appears twice"},
		{"number for string", `{"id":7}`, "id", "must be a string, not the number 7"},
		{"null for string", `{"id":null}`, "id", "must be a string, not null"},
		{"string for number", `{"count":"7"}`, "count", "must be a whole number, not a string"},
		{"fraction", `{"count":1.5}`, "count", "1.5 does not"},
		{"exponent", `{"count":1e3}`, "count", "without fraction or exponent"},
		{"over 64 bits", `{"count":9223372036854775808}`, "count", "fit in 64 bits"},
		{"string for bool", `{"on":"yes"}`, "on", "must be true or false, not a string"},
		{"object for list", `{"parts":{}}`, "parts", "must be an array, not an object"},
		{"in a list", `{"parts":[{"name":"a"},{"name":true}]}`, "parts[1].name", "must be a string"},
		{"bad time", `{"at":"yesterday"}`, "at", "RFC 3339"},
		{"offset of a day", `{"at":"2026-07-23T10:00:00+24:00"}`, "at", "2026-07-23T14:32:07Z"},
		{"offset of 60 minutes", `{"at":"2026-07-23T10:00:00+01:60"}`, "at", "RFC 3339"},
		{"hour of one digit", `{"at":"2026-07-23T1:00:00Z"}`, "at", "RFC 3339"},
		{"comma in a time", `{"at":"2026-07-23T10:00:00,5Z"}`, "at", "RFC 3339"},
		{"no zone", `{"at":"2026-07-23T10:00:00"}`, "at", "RFC 3339"},
		{"no such day", `{"at":"2026-02-30T10:00:00Z"}`, "at", "RFC 3339"},
		{"year -1 in UTC", `{"at":"0000-01-01T00:00:00+01:00"}`, "at", "RFC 3339"},
		{"year 10000 in UTC", `{"at":"9999-12-31T23:30:00-01:00"}`, "at", "RFC 3339"},
		{"high surrogate", `{"id":"a\ud800"}`, "id", "half of a surrogate pair"},
		{"low surrogate", `{"part":{"name":"\udc00b"}}`, "part.name", "half of a surrogate pair"},
		{"two high surrogates", `{ "id" : "\uD83D\uD83D" }`, "id", "half of a surrogate pair"},
		{"pair the wrong way", `{"parts":[{},{"name":"x\ude00\ud83d"}]}`, "parts[1].name", "half of a surrogate pair"},
		{"surrogate in a name", `{"i\ud800d":""}`, "i\uFFFDd", "is not a field here"},
		{"number for time", `{"at":5}`, "at", "2026-07-23T14:32:07Z, not the number 5"},
		{"deep", `{"part":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "", "deeper than 32"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var d document
			found := strictjson.Decode([]byte(c.body), &d)
			if len(found) != 1 || found[0].Field != c.field || !strings.Contains(found[0].Message, c.says) {
				t.Fatalf("found %q, want %q: …%s…", found, c.field, c.says)
			}
		})
	}
}

func TestDecodeNamesAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	var d document
	found := strictjson.Decode([]byte(`{"id":1,"rank":"x","zzz":0}`), &d)
	if len(found) != 3 || found[0].Field != "id" || found[1].Field != "rank" || found[2].Field != "zzz" {
		t.Fatalf("found %q", found)
	}
	if found[0].String() != "id: must be a string, not the number 1" {
		t.Fatalf("reads %q", found[0].String())
	}
}

// What is escaped as it should be passes, and what only looks like an escape.
func TestDecodeTakesEscapes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"id":"\ud83d\ude00\uD83D\uDE00"}`: "😀😀",
		`{"id":"\\ud800 \"\u00e4\n"}`:       "\\ud800 \"ä\n",
		`{"id":"\ufffd\\"}`:                 "\uFFFD\\",
		`{"id":"` + "\uFFFD" + `"}`:         "\uFFFD",
	} {
		var d document
		if found := strictjson.Decode([]byte(body), &d); len(found) > 0 || d.ID != want {
			t.Errorf("%s: %q, %v", body, d.ID, found)
		}
	}
}

// Each time that passes can be written again.
func TestDecodeTakesTimesThatCanBeWritten(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2026-07-23T10:00:00+23:59", "2026-07-23T10:00:00-00:00", "2024-02-29T00:00:00.5-12:00",
	} {
		var d document
		if found := strictjson.Decode([]byte(`{"at":"`+at+`"}`), &d); len(found) > 0 {
			t.Fatalf("%s: %v", at, found)
		}
		for _, written := range []time.Time{*d.At, d.At.UTC()} {
			if _, err := json.Marshal(written); err != nil {
				t.Errorf("%s: %v", at, err)
			}
		}
	}
}

func TestDecodeTakesNullWhereAValueMayBeAbsent(t *testing.T) {
	t.Parallel()
	var d document
	if found := strictjson.Decode([]byte(`{"count":null,"parts":null,"at":null}`), &d); len(found) > 0 {
		t.Fatalf("found %v", found)
	}
}

// FuzzDecode holds that what the checker lets pass the decoder takes too:
// otherwise a mistake would be reported without its field. What passes can be
// written again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"id":"a","count":1,"part":{"name":"b"},"parts":[{}],"at":"2026-07-23T14:32:07Z"}`))
	f.Add([]byte(`{"at":"2026-07-23T24:00:00Z"}`))
	f.Add([]byte(`{"at":"2026-07-23T10:00:00+24:00"}`))
	f.Add([]byte(`{"id":"\ud800\\","part":{"name":"\ud83d\ude00"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d document
		found := strictjson.Decode(data, &d)
		for _, e := range found {
			if e.Field == "" && strings.Contains(e.Message, "cannot unmarshal") {
				t.Fatalf("%q passed the checker: %s", data, e.Message)
			}
		}
		if _, err := json.Marshal(d); err != nil && len(found) == 0 {
			t.Fatalf("%q passed and cannot be written: %v", data, err)
		}
	})
}
