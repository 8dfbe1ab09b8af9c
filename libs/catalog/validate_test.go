package catalog_test

import (
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/catalog"
	events "github.com/sluice-platform/sluice/schemas/events/catalog"
)

func demo() events.Service {
	return events.Service{
		Name: "payments", Prefix: "/payments/",
		Upstreams: []events.Upstream{{URL: "http://payments:8080/base", Region: "eu"}},
		Endpoints: []events.Endpoint{
			{Pattern: "POST /payments/pay", Cost: new(int64(20))},
			{Pattern: "/payments/{id}/{rest...}"},
		},
	}
}

func TestValidateTakesAService(t *testing.T) {
	t.Parallel()
	if found := catalog.Validate(demo()); len(found) > 0 {
		t.Fatalf("found %v", found)
	}
	strict := demo()
	strict.RequireKey, strict.RequireIdentity, strict.RefuseStaleKeys, strict.CostHeader = true, events.RequireKey, true, "x-sluice-cost"
	strict.MaxCost = new(int64(1 << 53))
	if found := catalog.Validate(strict); len(found) > 0 {
		t.Fatalf("with settings: found %v", found)
	}
	root := demo()
	root.Prefix, root.Name = "/", "all {of} it: 100%"
	if found := catalog.Validate(root); len(found) > 0 {
		t.Fatalf("prefix /: found %v", found)
	}
}

func TestValidateNamesEachMistake(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name        string
		change      func(*events.Service)
		field, says string
	}{
		{"no name", func(s *events.Service) { s.Name = "" }, "name", "1 to 128"},
		{"long name", func(s *events.Service) { s.Name = strings.Repeat("ä", 129) }, "name", "not 129"},
		{"control", func(s *events.Service) { s.Name = "pay\tments" }, "name", "printable"},
		{"slash name", func(s *events.Service) { s.Name = "/" }, "name", "slash alone"},
		{"dot name", func(s *events.Service) { s.Name = ".." }, "name", "dot segment"},
		{"no slash", func(s *events.Service) { s.Prefix = "/payments" }, "prefix", "begin and end with /"},
		{"dots", func(s *events.Service) { s.Prefix = "/a/../b/" }, "prefix", "clean path"},
		{"double slash", func(s *events.Service) { s.Prefix = "/payments//" }, "prefix", "clean path"},
		{"wildcard prefix", func(s *events.Service) { s.Prefix = "/{x}/" }, "prefix", "without {"},
		{"long prefix", func(s *events.Service) { s.Prefix = "/" + strings.Repeat("a", 600) + "/" }, "prefix", "at most 512"},
		{"no upstream", func(s *events.Service) { s.Upstreams = nil }, "upstreams", "1 to 64"},
		{"scheme", func(s *events.Service) { s.Upstreams[0].URL = "ftp://a" }, "upstreams[0].url", "http:// or https://"},
		{"no host", func(s *events.Service) { s.Upstreams[0].URL = "http://:80" }, "upstreams[0].url", "host"},
		{"password", func(s *events.Service) { s.Upstreams[0].URL = "http://u:hunter2@a" }, "upstreams[0].url", "password"},
		{"query", func(s *events.Service) { s.Upstreams[0].URL = "http://a/?b" }, "upstreams[0].url", "no query"},
		{"port", func(s *events.Service) { s.Upstreams[0].URL = "http://a:99999" }, "upstreams[0].url", "port"},
		{"weight", func(s *events.Service) { s.Upstreams[0].Weight = new(1001) }, "upstreams[0].weight", "0 to 1000"},
		{"all at rest", func(s *events.Service) { s.Upstreams[0].Weight = new(0) }, "upstreams", "weight above 0"},
		{"pattern", func(s *events.Service) { s.Endpoints[0].Pattern = "POST /payments/{" }, "endpoints[0].pattern", "ServeMux"},
		{"elsewhere", func(s *events.Service) { s.Endpoints[1].Pattern = "GET /other/" }, "endpoints[1].pattern", "under the service's prefix /payments/"},
		{"twice", func(s *events.Service) { s.Endpoints[1].Pattern = s.Endpoints[0].Pattern }, "endpoints[1].pattern", "appears twice"},
		{"crowd", func(s *events.Service) { s.Endpoints = make([]events.Endpoint, 5001) }, "endpoints", "at most 5000"},
		{"no kind of identity", func(s *events.Service) { s.RequireIdentity = "jwt" }, "requireIdentity", "key, token or keyOrToken"},
		{"key against token", func(s *events.Service) { s.RequireKey, s.RequireIdentity = true, "token" }, "requireIdentity", "leave one of them out"},
		{"key against either", func(s *events.Service) { s.RequireKey, s.RequireIdentity = true, "keyOrToken" }, "requireIdentity", "leave one of them out"},
		{"no header name", func(s *events.Service) { s.CostHeader = "X Cost" }, "costHeader", "name of a header"},
		{"long header name", func(s *events.Service) { s.CostHeader = strings.Repeat("x", 65) }, "costHeader", "at most 64"},
		{"max cost of 0", func(s *events.Service) { s.CostHeader, s.MaxCost = "X-Cost", new(int64(0)) }, "maxCost", "from 1 to 2^53, not 0"},
		{"max cost above", func(s *events.Service) { s.CostHeader, s.MaxCost = "X-Cost", new(int64(1<<53+1)) }, "maxCost", "from 1 to 2^53"},
		{"the gate's own paths", func(s *events.Service) { s.Prefix = "/.sluice/"; s.Endpoints = nil }, "prefix", "are the gate's own"},
		{"below the gate's own paths", func(s *events.Service) { s.Prefix = "/.sluice/v1/reservations/"; s.Endpoints = nil }, "prefix", "are the gate's own"},
		{"a header of HTTP", func(s *events.Service) { s.CostHeader = "content-length" }, "costHeader", "must not be Content-Length"},
		{"a header of the gate", func(s *events.Service) { s.CostHeader = "RateLimit" }, "costHeader", "means something else"},
		{"cache ttl", func(s *events.Service) { s.Cache = &events.Cache{TTL: "1.5s"} }, "cache.ttl", "whole seconds"},
		{"cache for years", func(s *events.Service) { s.Cache = &events.Cache{TTL: "73h"} }, "cache.ttl", "at most 72h"},
		{"stale for years", func(s *events.Service) { s.Cache = &events.Cache{StaleIfError: "25h"} }, "cache.staleIfError", "at most 24h"},
		{"stale in the past", func(s *events.Service) { s.Cache = &events.Cache{StaleWhileRevalidate: "-1s"} }, "cache.staleWhileRevalidate", "whole seconds"},
		{"no kind of query", func(s *events.Service) { s.Cache = &events.Cache{Query: "some"} }, "cache.query", "all, none or named"},
		{"query without names", func(s *events.Service) { s.Cache = &events.Cache{Query: "named"} }, "cache.queryNames", "must name"},
		{"names without query", func(s *events.Service) { s.Cache = &events.Cache{QueryNames: []string{"a"}} }, "cache.queryNames", "left out"},
		{"no cached header", func(s *events.Service) { s.Cache = &events.Cache{Headers: []string{"a b"}} }, "cache.headers", "each name once"},
		{"a header twice", func(s *events.Service) { s.Cache = &events.Cache{Headers: []string{"a", "A"}} }, "cache.headers", "each name once"},
		{"a secret in the key", func(s *events.Service) { s.Cache = &events.Cache{Headers: []string{"authorization"}} }, "cache.headers", "no part of a key"},
		{"tags in Vary", func(s *events.Service) { s.Cache = &events.Cache{TagsHeader: "vary"} }, "cache.tagsHeader", "must not be Vary"},
		{"huge objects", func(s *events.Service) { s.Endpoints[0].Cache = &events.Cache{MaxObjectBytes: 1 << 30} }, "endpoints[0].cache.maxObjectBytes", "1 to 16777216"},
		{"cost", func(s *events.Service) { s.Endpoints[0].Cost = new(int64(-1)) }, "endpoints[0].cost", "0 to 2^53"},
		{"dear", func(s *events.Service) { s.Endpoints[0].Cost = new(int64(1<<53 + 1)) }, "endpoints[0].cost", "0 to 2^53"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := demo()
			c.change(&s)
			found := catalog.Validate(s)
			if len(found) == 0 || found[0].Field != c.field || !strings.Contains(found[0].Message, c.says) {
				t.Fatalf("found %v, want %s: …%s…", found, c.field, c.says)
			}
		})
	}
}

func TestValidateRepeatsNoPassword(t *testing.T) {
	t.Parallel()
	s := demo()
	s.Upstreams[0].URL = "http://u:hunter2@a:b:c/%zz"
	for _, e := range catalog.Validate(s) {
		if strings.Contains(e.Message, "hunter2") {
			t.Fatalf("%s", e.Message)
		}
	}
}

func TestNormalizeFillsACopy(t *testing.T) {
	t.Parallel()
	given := demo()
	full := catalog.Normalize(given)
	if *full.Upstreams[0].Weight != 1 || *full.Endpoints[0].Cost != 20 || *full.Endpoints[1].Cost != 1 {
		t.Fatalf("normalised to %+v", full)
	}
	given.Cache = &events.Cache{TTL: "5s"}
	if c := catalog.Normalize(given).Cache; !*c.Enabled || c.Query != events.QueryAll || c.MaxObjectBytes != 1<<20 || given.Cache.Query != "" {
		t.Fatalf("cache normalised to %+v", c)
	}
	given.Cache.Enabled = new(false)
	if c := catalog.Normalize(given).Cache; *c.Enabled {
		t.Fatalf("cache that is off normalised to %+v", c)
	}
	if given.Upstreams[0].Weight != nil || given.Endpoints[1].Cost != nil {
		t.Fatal("the argument was changed")
	}
}
