package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-platform/sluice/libs/service"
)

// site is an element with sections in sections.
type site struct {
	Name   string `koanf:"name" doc:"n"`
	Claims struct {
		Tenant   string   `koanf:"tenant" doc:"t"`
		Required []string `koanf:"required" doc:"r"`
		Deep     struct {
			After time.Duration  `koanf:"after" doc:"a"`
			Token service.Secret `koanf:"token" doc:"s"`
		} `koanf:"deep"`
	} `koanf:"claims"`
}

func TestSectionsInElements(t *testing.T) {
	t.Parallel()
	var full site
	full.Name, full.Claims.Tenant, full.Claims.Required = "a", "org.id", []string{"tenant", "user"}
	full.Claims.Deep.After, full.Claims.Deep.Token = time.Minute, "x"
	want := []site{full, {Name: "b"}}
	for _, in := range []string{
		"[{name: a, claims: {tenant: org.id, required: [tenant, user], deep: {after: 1m, token: x}}}, {name: b}]",
		"[{name: a, claims.tenant: org.id, claims: {required: 'tenant, user', deep.after: 1m, deep: {token: x}}}, {name: b, claims: }]",
		`[{"name":"a","claims":{"tenant":"org.id","required":["tenant","user"],"deep":{"after":"60s","token":"x"}}},{"name":"b","claims":{}}]`,
	} {
		v, err := convert(reflect.TypeFor[[]site](), in)
		if err != nil || !reflect.DeepEqual(v.Interface(), want) {
			t.Errorf("%s:\n%+v, %v\nwant %+v", in, v, err, want)
		}
	}
}

func TestSectionsInElementsRefuse(t *testing.T) {
	t.Parallel()
	for in, wrong := range map[string]string{
		"[{claims: {tenat: x}}]":                           "element 0: unknown field claims.tenat; did you mean claims.tenant?",
		"[{name: a}, {claims: {deep: {after: 5}}}]":        "element 1: claims.deep.after: 5 has no unit",
		"[{claims: tenant}]":                               "element 0: claims: not an object",
		"[{claims: {deep: [a]}}]":                          "element 0: claims.deep: not an object",
		"[{claims: {tenant: }}]":                           "element 0: claims.tenant: no value",
		"[{claims: {tenant: a}, claims.tenant: b}]":        "element 0: claims.tenant: given twice",
		"[{claims: {deep: {token: 4711000000000004711}}}]": "element 0: claims.deep.token: not a string",
		"[{name: {tenant: x}}]":                            "element 0: name: map[tenant:x] is not a string",
		"[{nam: 1, claims: {a: 1}, claims.deep.x: 2}]":     "element 0: unknown field claims.a",
	} {
		_, err := convert(reflect.TypeFor[[]site](), in)
		if err == nil || !strings.HasPrefix(err.Error(), wrong) || strings.Contains(err.Error(), "4711000000000004711") {
			t.Errorf("%s: %v, want %s", in, err, wrong)
		}
	}
}

// What is printed of an element is one that can be given, its secrets masked.
func TestPrintedElementsLoadAgain(t *testing.T) {
	t.Parallel()
	in := "[{name: a, claims: {tenant: org.id, required: [tenant], deep: {after: 1m, token: hunter2}}}]"
	v, err := convert(reflect.TypeFor[[]site](), in)
	if err != nil {
		t.Fatal(err)
	}
	node, err := encode(v)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	printed := strings.TrimSpace(string(text))
	if want := strings.Replace(in, "hunter2", "'***'", 1); printed != want {
		t.Errorf("printed %s\nwant    %s", printed, want)
	}
	if again, err := convert(reflect.TypeFor[[]site](), printed); err != nil || again.Len() != 1 {
		t.Errorf("%s: %v", printed, err)
	}
}
