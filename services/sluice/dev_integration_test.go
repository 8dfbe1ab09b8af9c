//go:build integration

package sluice

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/servertest"
)

const (
	portGateway, portSecond       = 8080, 8081
	portControlplane, portAdmin   = 8088, 8089
	portDemo                      = 9000
	adminHeader, adminHeaderValue = "Authorization", "Bearer " + devAdmin
)

// The whole of sluice dev, as a new user meets it: first start, limits, the
// decision found again, an orderly stop, a second start, a kill, a third.
func TestDevFromFirstStartToKill(t *testing.T) {
	// Closed to other users, so that under root PostgreSQL's data must lie elsewhere.
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	data, offset := filepath.Join(closed, "data"), freeOffset(t)

	first := startDev(t, data, offset).awaitReady()
	removeAfterwards(t, first.postgresData())
	passed, decision := first.flood("acme", 40)
	if passed < 10 || passed > 12 {
		t.Errorf("%d of 40 passed, want 10 to 12", passed)
	}
	first.demoSaw(passed)
	first.decisionIsFound(decision)
	first.metricsAreDocumented()
	first.refusesASecond(data)
	first.changeDemoRules()
	children := first.children()
	first.signal(syscall.SIGTERM)
	if code := first.awaitEnd(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	awaitGone(t, children)

	second := startDev(t, data, offset+1).awaitReady()
	second.keptTheChanges()
	if passed, _ := second.flood("globex", 40); passed < 20 || passed > 22 {
		t.Errorf("%d of 40 passed with the raised burst, want 20 to 22", passed)
	}
	second.decisionIsFound(decision)
	children = second.children()
	second.signal(syscall.SIGKILL)
	second.awaitEnd()
	awaitGone(t, children)

	third := startDev(t, data, offset+1).awaitReady()
	third.keptTheChanges()
	if passed, _ := third.flood("globex", 10); passed > 9 {
		t.Errorf("the bucket was full again after a kill: all %d passed", passed)
	}
	if passed, _ := third.flood("initech", 40); passed < 20 || passed > 22 {
		t.Errorf("%d of 40 passed after a kill, want 20 to 22", passed)
	}
	if strings.Contains(third.output(), "moved") {
		t.Error("the log of the in-process Kafka did not survive a kill")
	}
	third.signal(syscall.SIGTERM)
	if code := third.awaitEnd(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
}

func TestDevNamesWhatIsInItsWay(t *testing.T) {
	offset := freeOffset(t)
	var taken []net.Listener
	for _, port := range []int{portGateway, portDemo} {
		l, err := net.Listen("tcp", (&devRun{offset: offset}).addr(port))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		taken = append(taken, l)
	}
	data := filepath.Join(t.TempDir(), "data")
	r := startDev(t, data, offset)
	if code := r.awaitEnd(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, want := range []string{taken[0].Addr().String(), taken[1].Addr().String(), "gateway", "demo service", "--set gateway.listen=", "--port-offset"} {
		if !strings.Contains(r.output(), want) {
			t.Errorf("output lacks %q:\n%s", want, r.output())
		}
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data folder was made before the ports were checked: %v", err)
	}
}

// postgresData is the folder that the output names.
func (r *devRun) postgresData() string {
	r.t.Helper()
	m := regexp.MustCompile(`psql '[^']+'; data in (.*)`).FindStringSubmatch(r.output())
	if m == nil {
		r.t.Fatal("the output does not say where PostgreSQL's data is")
	}
	if _, err := os.Stat(filepath.Join(m[1], "PG_VERSION")); err != nil {
		r.t.Errorf("no PostgreSQL data where the output says: %v", err)
	}
	return m[1]
}

// removeAfterwards removes data that lies outside the test's own folder.
func removeAfterwards(t *testing.T, data string) {
	t.Helper()
	if dir := filepath.Dir(data); strings.HasPrefix(filepath.Base(dir), "sluice-") {
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// flood sends n requests of a tenant to both gateways in turn and returns how
// many passed and one decision's id.
func (r *devRun) flood(tenant string, n int) (passed int, decision string) {
	r.t.Helper()
	for i := range n {
		code, header, body := r.do(http.MethodGet, []int{portGateway, portSecond}[i%2], "/demo/hello", "", "X-Tenant-Id", tenant)
		switch code {
		case http.StatusOK:
			passed++
		case http.StatusTooManyRequests:
		default:
			r.t.Fatalf("answer %d %s", code, body)
		}
		decision = header.Get("Sluice-Decision-Id")
	}
	return passed, decision
}

func (r *devRun) demoSaw(requests int) {
	r.t.Helper()
	_, _, body := r.do(http.MethodGet, portDemo, "/stats", "")
	if want := fmt.Sprintf(`{"requests":%d}`, requests); strings.TrimSpace(body) != want {
		r.t.Errorf("the demo service says %s, want %s", body, want)
	}
}

func (r *devRun) decisionIsFound(id string) {
	r.t.Helper()
	servertest.Eventually(r.t, 20*time.Second, "the decision to be found", func() bool {
		code, _, body := r.do(http.MethodGet, portControlplane, "/v1/decisions/"+id, "", adminHeader, "Bearer "+devReadonly)
		return code == http.StatusOK && strings.Contains(body, id) && strings.Contains(body, "hello-gcra")
	})
}

// metricsAreDocumented holds what a running process shows against the
// generated reference: a metric that no RegisterMetrics tells of is found here.
func (r *devRun) metricsAreDocumented() {
	r.t.Helper()
	reference, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		r.t.Fatal(err)
	}
	_, _, body := r.do(http.MethodGet, portAdmin, "/metrics", "")
	names := regexp.MustCompile(`(?m)^# TYPE ((?:sluice|ratelimit)_\w+) `).FindAllStringSubmatch(body, -1)
	if len(names) < 15 {
		r.t.Errorf("only %d metrics of ours on /metrics", len(names))
	}
	for _, m := range names {
		if !strings.Contains(string(reference), "`"+m[1]+"`") {
			r.t.Errorf("docs/reference/metrics.md lacks %s", m[1])
		}
	}
}

// refusesASecond starts another on the same data.
func (r *devRun) refusesASecond(data string) {
	r.t.Helper()
	other := startDev(r.t, data, freeOffset(r.t))
	if code := other.awaitEnd(); code != 1 || !strings.Contains(other.output(), "is used by another sluice dev") {
		r.t.Errorf("a second on the same data: exit code %d\n%s", code, other.output())
	}
}

// changeDemoRules does what a user may do: deletes one demo rule and doubles
// the burst of the other.
func (r *devRun) changeDemoRules() {
	r.t.Helper()
	if code, _, body := r.do(http.MethodDelete, portControlplane, "/v1/rules/report-quota", "", adminHeader, adminHeaderValue, "If-Match", "*"); code != http.StatusNoContent {
		r.t.Fatalf("delete: %d %s", code, body)
	}
	_, _, body := r.do(http.MethodGet, portControlplane, "/v1/rules/hello-gcra", "", adminHeader, adminHeaderValue)
	var rule map[string]any
	if err := json.Unmarshal([]byte(body), &rule); err != nil {
		r.t.Fatalf("%v: %s", err, body)
	}
	rule["limit"].(map[string]any)["burst"] = 20
	raised, err := json.Marshal(rule)
	if err != nil {
		r.t.Fatal(err)
	}
	code, _, body := r.do(http.MethodPut, portControlplane, "/v1/rules/hello-gcra", string(raised), adminHeader, adminHeaderValue, "If-Match", "*", "Content-Type", "application/json")
	if code != http.StatusOK {
		r.t.Fatalf("put: %d %s", code, body)
	}
}

// keptTheChanges: the demo data is created once, and is the user's from then on.
func (r *devRun) keptTheChanges() {
	r.t.Helper()
	if code, _, _ := r.do(http.MethodGet, portControlplane, "/v1/rules/report-quota", "", adminHeader, adminHeaderValue); code != http.StatusNotFound {
		r.t.Errorf("the deleted rule answers %d", code)
	}
	if _, _, body := r.do(http.MethodGet, portControlplane, "/v1/rules/hello-gcra", "", adminHeader, adminHeaderValue); !strings.Contains(body, `"burst":20`) {
		r.t.Errorf("the raised rule is %s", body)
	}
}
