package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/service"
)

func yamlFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func load(t *testing.T, o Options) *Loaded {
	t.Helper()
	l, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestDefaultsAreValid(t *testing.T) {
	t.Parallel()
	if l := load(t, Options{}); !reflect.DeepEqual(l.Config, Default()) || len(l.Sources) != 0 {
		t.Errorf("config %+v with sources %v", l.Config, l.Sources)
	}
}

func TestLaterLayersWin(t *testing.T) {
	t.Parallel()
	const key, env = "redis.counters.keyPrefix", "SLUICE_REDIS_COUNTERS_KEY_PREFIX"
	yaml := "redis:\n  counters:\n    keyPrefix: file\n"
	cases := []struct {
		name, want, source string
		options            Options
	}{
		{"default", "sluice:", "", Options{}},
		{"mode", "mode", "this mode", Options{Mode: map[string]any{key: "mode"}}},
		{"file", "file", "file", Options{Mode: map[string]any{key: "mode"}, File: "-"}},
		{"environment", "env", "environment " + env, Options{File: "-", Environ: []string{env + "=env"}}},
		{"flag", "flag", "flag", Options{File: "-", Environ: []string{env + "=env"}, Flags: map[string]string{key: "flag"}}},
		{"set", "last", "--set", Options{Environ: []string{env + "=env"}, Flags: map[string]string{key: "flag"}, Sets: []string{key + "=set", key + "=last"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.options.File != "" {
				c.options.File = yamlFile(t, yaml)
			}
			l := load(t, c.options)
			if got := l.Config.Redis.Counters.KeyPrefix; got != c.want {
				t.Errorf("value %q, want %q", got, c.want)
			}
			if got := l.Sources[key]; !strings.HasPrefix(got, c.source) || (c.source == "" && got != "") {
				t.Errorf("source %q, want %q", got, c.source)
			}
		})
	}
}

func TestEveryTypeFromEverySource(t *testing.T) {
	t.Parallel()
	yaml := `
log: {level: debug}
stop:
  timeout: 3s
postgres:
  url: postgres://u:hunter2@db/sluice
  maxConns: 7
redis.counters.tls.enabled: true
demo: # all its lines commented out
`
	fromFile := load(t, Options{File: yamlFile(t, yaml)}).Config
	fromSets := load(t, Options{Sets: []string{"log.level=debug", "stop.timeout=3s", "postgres.maxConns=7",
		"postgres.url=postgres://u:hunter2@db/sluice", "redis.counters.tls.enabled=true"}}).Config
	for name, c := range map[string]Config{"file": fromFile, "sets": fromSets} {
		if c.Log.Level != "debug" || c.Stop.Timeout != 3*time.Second || c.Postgres.MaxConns != 7 ||
			c.Postgres.URL.Reveal() != "postgres://u:hunter2@db/sluice" || !c.Redis.Counters.TLS.Enabled {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestErrorsNameTheKeyAndWhatWouldBeRight(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		options Options
		yaml    string
		want    []string
	}{
		{"unknown key", Options{Sets: []string{"redis.counters.adr=x:1"}}, "", []string{"redis.counters.adr (--set): unknown key; did you mean redis.counters.addr?"}},
		{"unknown key far from any", Options{Sets: []string{"zzz=1"}}, "", []string{"zzz (--set): unknown key"}},
		{"unknown key in a file", Options{}, "admin:\n  listne: :1\n", []string{"admin.listne (file ", "did you mean admin.listen?"}},
		{"unknown variable", Options{Environ: []string{"SLUICE_ADMIN_LISTN=:1"}}, "", []string{"SLUICE_ADMIN_LISTN: unknown environment variable; did you mean SLUICE_ADMIN_LISTEN?"}},
		{"section with a value", Options{}, "admin: 8089\n", []string{"admin (file ", "this is a section; give one of its keys, such as admin.listen"}},
		{"set without a value", Options{Sets: []string{"admin.listen"}}, "", []string{"--set admin.listen: give key=value"}},
		{"null", Options{}, "admin:\n  listen:\n", []string{"admin.listen (file ", "no value; leave the key out"}},
		{"no integer", Options{Sets: []string{"postgres.maxConns=many"}}, "", []string{`postgres.maxConns (--set): "many" is not an integer`}},
		{"too large", Options{Sets: []string{"postgres.maxConns=99999999999"}}, "", []string{"postgres.maxConns (--set): 99999999999 is too large"}},
		{"fraction", Options{}, "postgres: {maxConns: 2.5}\n", []string{`"2.5" is not an integer`}},
		{"duration without unit", Options{}, "stop: {timeout: 5}\n", []string{"stop.timeout (file ", "5 has no unit: give a duration such as"}},
		{"no duration", Options{Sets: []string{"stop.timeout=soon"}}, "", []string{`"soon" is no duration`}},
		{"no boolean", Options{Sets: []string{"redis.counters.tls.enabled=yes"}}, "", []string{`"yes" is neither true nor false`}},
		{"number for a string", Options{}, "redis: {counters: {username: 5}}\n", []string{"5 is not a string: put it in quotes"}},
		{"no choice", Options{Sets: []string{"usage.store=mongo"}}, "", []string{`usage.store: "mongo" is none of elasticsearch, postgres`}},
		{"no address", Options{Sets: []string{"admin.listen=8089"}}, "", []string{`admin.listen: "8089" is no address: give host:port`}},
		{"no url", Options{Sets: []string{"elasticsearch.url=localhost:9200"}}, "", []string{"elasticsearch.url: not a URL: give http://"}},
		{"all at once", Options{Sets: []string{"a=1", "b=2"}}, "", []string{"a (--set)", "b (--set)"}},
		{"bad yaml", Options{}, "a: [", []string{"configuration file"}},
		{"no file", Options{File: "/nonexistent/x.yaml"}, "", []string{"/nonexistent/x.yaml", "no such file"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.yaml != "" {
				c.options.File = yamlFile(t, c.yaml)
			}
			_, err := Load(c.options)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestVariablesThatAreNoKeysArePassedOver(t *testing.T) {
	t.Parallel()
	load(t, Options{Environ: []string{"SLUICE_TEST_POSTGRES_URL=x", "SLUICE_URL=x", "SLUICE_ADMIN_URL=x", "SLUICE_GATEWAY=x", "SLUICE_TOKEN=x", "SLUICE_CONFIG=x", "SLUICE_CACHE_DIR=x", "HOME=/root"}})
}

func TestErrorsKeepSecrets(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{Sets: []string{"postgres.url=hunter2"}},
		{Sets: []string{"postgres.url=mysql://u:hunter2@db/x"}},
		{Sets: []string{"elasticsearch.url=u:hunter2@es"}},
		{File: yamlFile(t, "elasticsearch: {password: 4711000000000004711}\n")},
	} {
		if _, err := Load(o); err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "4711000000000004711") {
			t.Errorf("error %v: want one without the secret", err)
		}
	}
}

func TestPrintedConfigurationLoadsAgainAndMasks(t *testing.T) {
	t.Parallel()
	l := load(t, Options{Sets: []string{"postgres.url=postgres://u:hunter2@db/x", "elasticsearch.apiKey=hunter2", "stop.timeout=7s"}})
	plain, err := l.YAML(false)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(plain); strings.Contains(text, "hunter2") || !strings.Contains(text, "timeout: 7s") || !strings.Contains(text, "***") {
		t.Errorf("printed:\n%s", text)
	}
	again := load(t, Options{File: yamlFile(t, strings.Replace(string(plain), `url: postgres://u:***@db/x`, `url: 'postgres://u:hunter2@db/x'`, 1))})
	want := l.Config
	want.Elasticsearch.APIKey = "***"
	if !reflect.DeepEqual(again.Config, want) {
		t.Errorf("loaded again: %+v\nwant %+v\nfrom\n%s", again.Config, want, plain)
	}
	sourced, err := l.YAML(true)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"timeout: 7s # --set", "level: info # default"} {
		if !strings.Contains(string(sourced), want) {
			t.Errorf("lacks %q:\n%s", want, sourced)
		}
	}
}

func TestEveryKeyHasItsOwnVariable(t *testing.T) {
	t.Parallel()
	keys, err := Keys(reflect.TypeFor[Config]()) // an error names a field without a tag
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) < 20 {
		t.Fatalf("only %d keys", len(keys))
	}
	owner := map[string]string{}
	for _, k := range keys {
		if other, taken := owner[k.Env]; taken {
			t.Errorf("%s and %s share %s", k.Path, other, k.Env)
		}
		if otherEnv(k.Env) {
			t.Errorf("%s has %s, which means something else", k.Path, k.Env)
		}
		owner[k.Env] = k.Path
	}
}

func TestEnvName(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"gateway.spool.sizeBytes": "SLUICE_GATEWAY_SPOOL_SIZE_BYTES",
		"kafka.clientId":          "SLUICE_KAFKA_CLIENT_ID",
		"log.level":               "SLUICE_LOG_LEVEL",
	} {
		if got := EnvName(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestKeysRefusesWhatCannotBeDocumentedOrGiven(t *testing.T) {
	t.Parallel()
	cases := map[string]reflect.Type{
		"no koanf tag": reflect.TypeFor[struct{ A string }](),
		"no doc tag": reflect.TypeFor[struct {
			A string `koanf:"a"`
		}](),
		"has no form": reflect.TypeFor[struct {
			A map[string]string `koanf:"a" doc:"x"`
		}](),
	}
	for want, typ := range cases {
		if _, err := Keys(typ); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestListsOfObjects(t *testing.T) {
	t.Parallel()
	type token struct {
		Name string         `koanf:"name" doc:"n"`
		Hash service.Secret `koanf:"hash" doc:"h"`
	}
	typ := reflect.TypeFor[[]token]()
	want := []token{{"ci", "x"}, {Name: "cd"}}
	v, err := convert(typ, "[{name: ci, hash: x}, {name: cd}]")
	if err != nil || !reflect.DeepEqual(v.Interface(), want) {
		t.Errorf("%v, %v", v, err)
	}
	for in, wrong := range map[string]string{
		"[{nmae: ci}]":    "element 0: unknown field nmae; did you mean name?",
		"[{name: 5}]":     "element 0: name: 5 is not a string",
		"[ci]":            "element 0: not an object",
		"[{name: hunter2": "not a list in YAML or JSON",
	} {
		if _, err := convert(typ, in); err == nil || !strings.HasPrefix(err.Error(), wrong) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", in, err, wrong)
		}
	}
}

// The configuration of the containers is an example that must stay right.
func TestTheContainersConfigurationLoads(t *testing.T) {
	t.Parallel()
	load(t, Options{File: "../../../deploy/compose/sluice.yaml"})
}
