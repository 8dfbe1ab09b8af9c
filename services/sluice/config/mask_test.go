package config

import (
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/service"
)

func TestOfAConnectionURLThePasswordIsMasked(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                   "",
		"postgres://sluice@127.0.0.1:5432/s": "postgres://sluice@127.0.0.1:5432/s",
		"postgres://u:s3cret@db/x":           "postgres://u:***@db/x",
		"postgres://u:@db/x":                 "postgres://u:***@db/x",
		"postgres://u:a:s3cret%40@db":        "postgres://u:***@db",
		"postgres://:s3cret@db,db2/x":        "postgres://:***@db,db2/x",
		"postgres://db/x?user=u&password=s3cret&sslmode=disable":  "postgres://db/x?user=u&password=***&sslmode=disable",
		"postgres://u@db/x?sslPassword=s3cret&pass%77ord=s3cret":  "postgres://u@db/x?sslPassword=***&pass%77ord=***",
		"postgres://u@db?options=-c%20a&sslmode=require&password": "postgres://u@db?options=-c%20a&sslmode=require&password=***",
		// A password that is not escaped ends the host too soon.
		"postgres://u:12?s3cret@db/x":    "***",
		"postgres://u:12#s3cret@db/x":    "***",
		"postgres://u:s3cret/x@db/x":     "***",
		"host=db password=s3cret user=u": "***",
		"postgres:u:s3cret@db":           "***",
		"postgres://u:s3cret%zz@db/x":    "***",
		"postgres://u:s3cret@db/x?a@=b":  "***",
	} {
		if got := maskPassword(service.Secret(in)); got != want {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
}

func TestUserinfoOfAnyURLIsMasked(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		"plain":                     "plain",
		"a@b":                       "a@b",
		"http://es:9200/x?y=1":      "http://es:9200/x?y=1",
		"http://u:s3cret@es:9200/x": "http://***@es:9200/x",
		"https://s3cret@es":         "https://***@es",
		"https://es/keys?mail=a@b":  "***",
		"http://u:s3/cret@es":       "***",
	} {
		if got := maskUserinfo(in); strings.Contains(got, "s3cret") || (got != want && !(got == mask && strings.Contains(in, "?mail"))) {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
}

// No key, and no element of a list, shows what a URL carries.
func TestPrintedURLsCarryNoCredentials(t *testing.T) {
	t.Parallel()
	// Nothing would use the address: it loads, and is printed.
	l := load(t, Options{Sets: []string{"usage.store=postgres", "elasticsearch.url=http://u:s3cret@h", "postgres.url=postgres://u:s3cret@db/x?password=s3cret"}})
	l.Config.Gateway.ID = "http://s3cret@h"
	text, err := l.YAML(true)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "s3cret") || !strings.Contains(string(text), "url: http://***@h ") {
		t.Errorf("printed:\n%s", text)
	}
}
