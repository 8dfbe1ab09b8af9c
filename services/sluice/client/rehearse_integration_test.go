//go:build integration

package client

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sluice-platform/sluice/libs/servertest"
)

// planeOf has the one service that is rehearsed.
func planeOf(t *testing.T, service string) server {
	t.Helper()
	plane := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, service)
	}))
	t.Cleanup(plane.Close)
	return server{url: plane.URL}
}

// With a Redis that answers, what else is missing is named.
func TestWhatARehearsalLacksIsNamed(t *testing.T) {
	addr, _ := servertest.Redis(t)
	s := planeOf(t, `{"name":"shop","prefix":"/shop/"}`)
	rehearse := []string{"cache", "rehearse", "--route", "shop", "--rate", "5", "--redis", "redis://" + addr, "--paths"}
	s.refused(t, "no stored answer tells how long a load takes", "/shop/a\n", append(rehearse, "-")...)
	s.refused(t, "/nowhere/paths", "", append(rehearse, "/nowhere/paths")...)
}
