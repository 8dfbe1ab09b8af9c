//go:build integration

package controlplane_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/schemas/events/purges"
)

func TestPurgeLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: goodService})
	made := func(body string) (p purges.Purge) {
		t.Helper()
		got := w.must(t, 202, request{method: "POST", path: "/v1/purges", body: body})
		if err := json.Unmarshal(got.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	tag := made(`{"service":"demo","tag":"a"}`)
	if tag.ID != tag.Target() || tag.Version == 0 || tag.At.IsZero() {
		t.Errorf("made %+v", tag)
	}
	// The same target again is the same purge, later in the order.
	if again := made(`{"service":"demo","tag":"a"}`); again.ID != tag.ID || again.Version <= tag.Version {
		t.Errorf("made %+v after %+v", again, tag)
	}
	for _, body := range []string{`{"service":"demo","url":"/demo/a?b=1"}`, `{"service":"demo","prefix":"/demo/"}`, `{"service":"demo","all":true}`} {
		made(body)
	}
	if got := w.must(t, 200, request{method: "GET", path: "/v1/purges?service=demo"}); strings.Count(got.Body.String(), `"id"`) != 4 {
		t.Errorf("list %s", got.Body)
	}
	w.holdMirror(t, "purges_v1", purges.Topic)
	if n := w.count(t, `SELECT count(*) FROM audit WHERE kind = 'purge'`); n != 5 {
		t.Errorf("%d audit entries", n)
	}

	// What no stored answer can be older than is retired by the next purge.
	if _, err := w.db.Exec(t.Context(), `UPDATE purges SET updated_at = $1 WHERE key <> $2`, time.Now().Add(-purges.Retention-time.Hour), tag.ID); err != nil {
		t.Fatal(err)
	}
	made(`{"service":"demo","tag":"a"}`)
	if n := w.count(t, `SELECT count(*) FROM purges WHERE document IS NOT NULL`); n != 1 {
		t.Errorf("%d purges are left", n)
	}
	w.holdMirror(t, "purges_v1", purges.Topic)
}

func TestPurgesAreRefusedByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: goodService})
	for body, field := range map[string]string{
		`{"service":"demo"}`:                               "",
		`{"service":"demo","tag":"a","all":true}`:          "",
		`{"tag":"a"}`:                                      "service",
		`{"service":"dmeo","tag":"a"}`:                     "service",
		`{"service":"demo","url":"http://a/b"}`:            "url",
		`{"service":"demo","url":"/a#b"}`:                  "url",
		`{"service":"demo","url":"/dmeo/a"}`:               "url",
		`{"service":"demo","url":"/demo/../dmeo/a"}`:       "url",
		`{"service":"demo","url":"/demo/%2e%2e/dmeo/a"}`:   "url",
		`{"service":"demo","url":"/demo/a%zz"}`:            "url",
		`{"service":"demo","url":"/demox?a"}`:              "url",
		`{"service":"demo","url":"/Demo/a"}`:               "url",
		`{"service":"demo","prefix":"/demo/a%c3"}`:         "prefix",
		`{"service":"demo","prefix":"/demo/%7Euser/"}`:     "prefix",
		`{"service":"demo","prefix":"/demo/../dmeo/"}`:     "prefix",
		`{"service":"demo","prefix":"/demo/%"}`:            "prefix",
		`{"service":"demo","prefix":"/dmeo"}`:              "prefix",
		`{"service":"demo","prefix":"a"}`:                  "prefix",
		`{"service":"demo","prefix":"/a?b"}`:               "prefix",
		`{"service":"demo","tag":"a b"}`:                   "tag",
		`{"service":"demo","tag":"a","soft":true}`:         "soft",
		`{"service":"demo","all":"yes"}`:                   "all",
		`{"service":"demo","url":"/` + long(2048) + `"}`:   "url",
		`{"service":"demo","tag":"` + long(257) + `"}`:     "tag",
		`{"service":"demo","prefix":"/","id":"purge_abc"}`: "id",
	} {
		p := w.must(t, 400, request{method: "POST", path: "/v1/purges", body: body}).problem(t)
		if len(p.Errors) == 0 || p.Errors[0].Field != field {
			t.Errorf("%.80s names %+v", body, p.Errors)
		}
	}
	if n := w.count(t, `SELECT count(*) FROM purges`); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

// Whatever spelling of a path a client may ask for, it can be purged by.
func TestPurgesBySpellingsOfAPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, 201, request{method: "POST", path: "/v1/services", body: goodService})
	for _, body := range []string{
		`{"service":"demo","url":"/demo"}`, `{"service":"demo","url":"/demo?a=/../b"}`, `{"service":"demo","url":"/dem%6F/a"}`, `{"service":"demo","url":"//demo//a"}`,
		`{"service":"demo","url":"/x/../demo/a"}`, `{"service":"demo","prefix":"/demo"}`, `{"service":"demo","prefix":"/demo/caf%C3"}`, `{"service":"demo","prefix":"/"}`,
	} {
		w.must(t, 202, request{method: "POST", path: "/v1/purges", body: body})
	}
}

func long(n int) string { return strings.Repeat("a", n) }
