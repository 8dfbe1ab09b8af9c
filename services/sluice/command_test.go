package sluice

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// sluiceCommand runs the command line in this process.
func sluiceCommand(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestCommands(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name           string
		args           []string
		code           int
		stdout, stderr []string
	}{
		{"help lists the modules", []string{"run", "--help"}, 0, []string{"gateway", "indexer", "(not in all)", "--target"}, nil},
		{"flag of the root's commands", []string{"usage", "--limit", "abc"}, 1, nil, []string{`sluice: --limit must be a whole number, not "abc"`}},
		{"flag by another name", []string{"config", "--source"}, 1, nil, []string{"unknown flag: --source: did you mean --sources?"}},
		{"version", []string{"version"}, 0, []string{"sluice ", "go1."}, nil},
		{"config", []string{"config", "--set", "postgres.url=postgres://u:hunter2@h/d", "--admin-listen", ":1"}, 0, []string{"listen: :1", "postgres://u:***@h/d"}, nil},
		{"config with sources", []string{"config", "--sources", "--set", "log.level=debug"}, 0, []string{"level: debug # --set"}, nil},
		{"help of config names dev's", []string{"config", "--help"}, 0, []string{"sluice dev --print-config"}, nil},
		{"configuration of dev", []string{"dev", "--print-config", "--port-offset", "7"}, 0, []string{"listen: 127.0.0.1:8087", "addr: 127.0.0.1:16386", "url: postgres://sluice@127.0.0.1:15439/sluice", "keys: ['***']", "127.0.0.1:19099", "store: postgres"}, nil},
		{"highest ports of dev", []string{"dev", "--print-config", "--port-offset", "46000"}, 0, []string{"127.0.0.1:65092", "listen: 127.0.0.1:54080"}, nil},
		{"ports that are none", []string{"dev", "--port-offset", "99999"}, 1, nil, []string{"sluice: --port-offset must be 0 to 46000, not 99999\n"}},
		{"ports below", []string{"dev", "--port-offset", "-1"}, 1, nil, []string{"sluice: --port-offset must be 0 to 46000, not -1\n"}},
		{"argument of dev", []string{"dev", "now"}, 1, nil, []string{`sluice: sluice dev takes no argument such as "now"`}},
		{"unknown key", []string{"config", "--set", "log.levle=debug"}, 1, nil, []string{"sluice: configuration:", "did you mean log.level?"}},
		{"unknown target", []string{"run", "--target", "everything"}, 1, nil, []string{"--target everything: no such module"}},
		{"unknown command", []string{"rnu"}, 1, nil, []string{"unknown command"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := sluiceCommand(t, c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d; %s", code, c.code, stderr)
			}
			for _, want := range c.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("stdout lacks %q:\n%s", want, stdout)
				}
			}
			for _, want := range c.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("stderr lacks %q:\n%s", want, stderr)
				}
			}
			if strings.Contains(stdout+stderr, "hunter2") {
				t.Error("a secret was printed")
			}
		})
	}
}

func TestHealthcheckIsReadyz(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]int{http.StatusOK: 0, http.StatusServiceUnavailable: 1} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				t.Errorf("asked %s", r.URL.Path)
			}
			w.Header().Set("Connection", "close")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"ready":…}`)
		}))
		got, stdout, _ := sluiceCommand(t, "healthcheck", "--url", server.URL+"/")
		if got != code || !strings.Contains(stdout, "ready") {
			t.Errorf("%d: exit code %d, want %d; %s", status, got, code, stdout)
		}
		server.Close()
	}
	if code, _, stderr := sluiceCommand(t, "healthcheck", "--url", "http://127.0.0.1:1"); code != 1 || !strings.Contains(stderr, "refused") {
		t.Errorf("nobody there: exit code %d, %s", code, stderr)
	}
}

// A flag with a wrong value is answered in our words, whichever it is.
func TestNoFlagAnswersInItsParsersWords(t *testing.T) {
	t.Parallel()
	checked := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			err := cmd.ParseFlags([]string{"--" + f.Name + `=a"bc`})
			if err == nil { // a text
				return
			}
			checked++
			text := cmd.FlagErrorFunc()(cmd, err).Error()
			if !strings.HasPrefix(text, "--"+f.Name+" must be ") || strings.Contains(text, "pars") || strings.Contains(text, "syntax") {
				t.Errorf("%s --%s says %q", cmd.CommandPath(), f.Name, text)
			}
		})
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk(NewCommand())
	if checked < 30 {
		t.Errorf("only %d flags have another type than text", checked)
	}
}
