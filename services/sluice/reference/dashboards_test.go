package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const repository = "../../.."

// series are the names and labels that queries may use, of metrics.md as it is
// written for the code as it is.
func series(t *testing.T) map[string]string {
	t.Helper()
	page, err := Metrics()
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (\\w+) \\| (?:`([^`]*)`)?")
	all := map[string]string{"up": ""}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		if all[m[1]] = m[3]; m[2] == "histogram" {
			all[m[1]+"_bucket"], all[m[1]+"_sum"], all[m[1]+"_count"] = m[3]+", le", m[3], m[3]
		}
	}
	if len(all) < 50 {
		t.Fatalf("found only %d series in metrics.md", len(all))
	}
	return all
}

// scraped are the labels that every series has.
const scraped = "module, instance, job"

var (
	selector = regexp.MustCompile(`([a-z][a-z0-9_]*)(\{[^}]*\})?\[`)
	instant  = regexp.MustCompile(`\b([a-z][a-z0-9]*_[a-z0-9_]+|up)\b(\{[^}]*\})?`)
	quoted   = regexp.MustCompile(`"[^"]*"`)
	matcher  = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\b(?:by|without) ?\([^)]*\)`)
	function = regexp.MustCompile(`[a-z_]+\(`)
)

// misnamed returns what of a query no metric of ours is called, or has as label.
func misnamed(query string, known map[string]string) (names []string, found int) {
	plain := function.ReplaceAllString(grouping.ReplaceAllString(quoted.ReplaceAllString(query, `""`), ""), "(")
	for _, m := range append(selector.FindAllStringSubmatch(plain, -1), instant.FindAllStringSubmatch(plain, -1)...) {
		labels, ok := known[m[1]]
		if !ok {
			names = append(names, m[1])
			continue
		}
		found++
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !strings.Contains(", "+labels+", "+scraped+", ", ", "+l[1]+", ") {
				names = append(names, m[1]+"{"+l[1]+"}")
			}
		}
	}
	return names, found
}

func checkQuery(t *testing.T, where, query string, known map[string]string) {
	t.Helper()
	names, found := misnamed(query, known)
	if len(names) > 0 || found == 0 {
		t.Errorf("%s: no metric is called %q (%d are) in %s", where, names, found, query)
	}
}

// A name that no query should have is found: the tests below can fail.
func TestMisnamedMetricsAreFound(t *testing.T) {
	t.Parallel()
	known := series(t)
	for query, want := range map[string]string{
		`rate(cache_request_total[5m])`:                               "cache_request_total",
		`cache_redis_down == 0`:                                       "cache_redis_down",
		`sum by (result) (rate(cache_requests_total{key="x"}[5m]))`:   "cache_requests_total{key}",
		`histogram_quantile(0.99, rate(cache_load_waiters_buck[5m]))`: "cache_load_waiters_buck",
	} {
		if names, _ := misnamed(query, known); len(names) == 0 || names[0] != want {
			t.Errorf("%s: found %q, want %s", query, names, want)
		}
	}
}

func TestDashboardsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := series(t)
	files, err := filepath.Glob(repository + "/deploy/grafana/dashboards/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		var board struct {
			UID, Title string
			Panels     []struct {
				ID      int
				Title   string
				Targets []struct{ Expr string }
			}
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &board); err != nil || board.UID == "" || len(board.Panels) == 0 {
			t.Errorf("%s: %v, %q with %d panels", file, err, board.UID, len(board.Panels))
		}
		ids := map[int]bool{}
		for _, p := range board.Panels {
			if ids[p.ID] || len(p.Targets) == 0 {
				t.Errorf("%s: panel %q has the id of another, or no query", file, p.Title)
			}
			ids[p.ID] = true
			for _, target := range p.Targets {
				checkQuery(t, filepath.Base(file)+": "+p.Title, target.Expr, known)
			}
		}
	}
}

// alert is a rule of Prometheus, with the fields that ours have.
type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      struct{ Severity string }
	Annotations struct{ Summary, Description, Runbook string }
}

// An alert asks for metrics that exist, and its page says what to do about it.
func TestAlertsNameMetricsAndPagesThatExist(t *testing.T) {
	t.Parallel()
	known := series(t)
	files, err := filepath.Glob(repository + "/deploy/prometheus/rules/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		var rules struct {
			Groups []struct {
				Name  string
				Rules []alert
			}
		}
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		decoder := yaml.NewDecoder(in)
		decoder.KnownFields(true)
		if err := decoder.Decode(&rules); err != nil || len(rules.Groups) == 0 {
			t.Fatalf("%s: %v, %d groups", file, err, len(rules.Groups))
		}
		for _, group := range rules.Groups {
			for _, a := range group.Rules {
				checkQuery(t, a.Alert, a.Expr, known)
				page, err := os.ReadFile(filepath.Join(repository, a.Annotations.Runbook))
				if err != nil || !strings.Contains(string(page), "`"+a.Alert+"`") {
					t.Errorf("%s: %s does not say what to do: %v", a.Alert, a.Annotations.Runbook, err)
				}
				if a.Annotations.Summary == "" || a.Labels.Severity != "warning" && a.Labels.Severity != "critical" {
					t.Errorf("%s: summary %q, severity %q", a.Alert, a.Annotations.Summary, a.Labels.Severity)
				}
			}
		}
	}
}

// Prometheus reads the rules where the compose file puts them.
func TestPrometheusReadsTheRules(t *testing.T) {
	t.Parallel()
	for file, line := range map[string]string{
		"docker-compose.yml":               "- ./deploy/prometheus/rules:/etc/prometheus/rules:ro\n",
		"deploy/prometheus/prometheus.yml": "rule_files:\n  - /etc/prometheus/rules/*.yml\n",
	} {
		if text, err := os.ReadFile(filepath.Join(repository, file)); err != nil || !strings.Contains(string(text), line) {
			t.Errorf("%s lacks %q: %v", file, line, err)
		}
	}
}
