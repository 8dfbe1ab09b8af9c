package house_test

import (
	"os/exec"
	"strings"
	"testing"
)

// Three modules form a stack, with tools/rehearsal between libs and services. A
// room may use schemas and libs, never another room. The binary and the end-to-end
// tests join rooms: that is their purpose.
func TestBorders(t *testing.T) {
	t.Parallel()
	joins := map[string]bool{"sluice": true, "cmd": true, "e2e": true}
	for _, src := range sources(t) {
		for _, imp := range src.imports {
			target, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			from, to := strings.Split(src.path, "/"), strings.Split(target, "/")
			switch {
			case from[0] == "schemas" && to[0] != "schemas":
				t.Errorf("%s imports %s: schemas import nothing above them", src.path, imp)
			case from[0] == "libs" && to[0] == "services":
				t.Errorf("%s imports %s: libs do not know services", src.path, imp)
			case from[0] == "services" && to[0] == "services" && from[1] != to[1] && !joins[from[1]]:
				t.Errorf("%s imports %s: rooms never import each other", src.path, imp)
			}
		}
	}
}

// The hot path must stand while Postgres and Elasticsearch are down, so the
// gateway cannot even link their clients.
func TestGatewayKnowsNeitherSQLNorElasticsearch(t *testing.T) {
	t.Parallel()
	deps := dependencies(t, "./gateway")
	if !strings.Contains(deps, module+"libs/stream") {
		t.Fatalf("go list names no libs/stream among the gateway's dependencies:\n%s", deps)
	}
	for _, banned := range []string{"database/sql", "github.com/jackc/", "github.com/elastic/", "github.com/pressly/goose"} {
		for dep := range strings.Lines(deps) {
			if strings.HasPrefix(dep, banned) {
				t.Errorf("the gateway depends on %s", strings.TrimSpace(dep))
			}
		}
	}
}

// Programs that only limit in process use libs/limit without a Redis client.
func TestLimitKnowsNoRedis(t *testing.T) {
	t.Parallel()
	deps := dependencies(t, module+"libs/limit")
	if !strings.Contains(deps, module+"libs/period") {
		t.Fatalf("go list names no libs/period among the dependencies:\n%s", deps)
	}
	if strings.Contains(deps, "github.com/redis/") {
		t.Error("libs/limit depends on a Redis client")
	}
}

func dependencies(t *testing.T, pkg string) string {
	t.Helper()
	list := exec.Command("go", "list", "-deps", pkg)
	list.Dir = root + "/services"
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", pkg, err)
	}
	return string(out)
}

// No drawer for what has no place: each package holds one idea.
func TestNoDrawers(t *testing.T) {
	t.Parallel()
	banned := map[string]bool{"utils": true, "util": true, "common": true, "helpers": true, "helper": true, "models": true, "misc": true, "shared": true}
	for _, src := range sources(t) {
		for _, part := range strings.Split(src.dir(), "/") {
			if banned[part] {
				t.Errorf("%s: no package is called %s; name the idea", src.path, part)
			}
		}
	}
}
