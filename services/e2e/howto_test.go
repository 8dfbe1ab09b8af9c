//go:build integration

package e2e_test

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// step is a block of commands of a page, and the lines it says they print.
type step struct{ commands, prints string }

var block = regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$")

// steps reads a how-to: each sh block, and the text block that follows it.
func steps(t *testing.T, page string) []step {
	t.Helper()
	text, err := os.ReadFile("../../docs/howto/" + page)
	if err != nil {
		t.Fatal(err)
	}
	var all []step
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "sh" {
			all = append(all, step{commands: m[2]})
		} else {
			all[len(all)-1].prints = m[2]
		}
	}
	return all
}

// missing returns the first line of want that got does not have after the lines
// before it, "" if it has all. … stands for anything within a line.
func missing(got, want string) string {
	for line := range strings.Lines(want) {
		line = strings.TrimSpace(line)
		parts := strings.Split(line, "…")
		for i := range parts {
			parts[i] = strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(parts[i])), " ", `\s+`)
		}
		found := regexp.MustCompile(strings.Join(parts, `[^\n]*`)).FindStringIndex(got)
		if found == nil {
			return line
		}
		got = got[found[1]:]
	}
	return ""
}

// selling is the configuration of what shows and bills, quickly.
func (s *stack) selling() map[string]any {
	s.t.Helper()
	keys := filepath.Join(s.t.TempDir(), "ticket-keys")
	if err := os.WriteFile(keys, []byte("test "+base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	portal := freeAddr(s.t)
	return map[string]any{
		"billing": map[string]any{"every": "200ms"},
		"portal": map[string]any{
			"listen": portal, "url": "http://" + portal, "keysFile": keys,
			"api": map[string]any{"url": "http://" + s.control, "token": adminToken},
		},
	}
}

// A newcomer who sells an API by the page gets what the page says.
func TestHowToSellAnAPI(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	s.process("rest", "controlplane,relay,keeper,billing,portal", s.selling()).start().awaitReady()
	s.goByThePage("sell-an-api.md", 9)
}

// And whoever reserves.
func TestHowToReserveAndCommit(t *testing.T) {
	t.Parallel()
	s := sharedStack(t)
	s.process("rest", "controlplane,relay,keeper", nil).start().awaitReady()
	s.goByThePage("reserve-and-commit.md", 8)
}

// goByThePage runs a how-to's steps beside a gateway, and compares what they print.
func (s *stack) goByThePage(page string, least int) {
	t := s.t
	t.Helper()
	g := s.gateway("gw")
	g.start()
	g.awaitReady()
	// One shell for the whole page: what a step sets, the next one has.
	dir := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(dir, "sluice")); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	environment := append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SLUICE_URL=http://"+s.control, "SLUICE_TOKEN="+adminToken,
		"GATE=http://"+g.addr, "API="+s.upstream.URL, "STATE="+state)
	all := steps(t, page)
	if len(all) < least {
		t.Fatalf("the page has only %d steps", len(all))
	}
	for i, step := range all {
		shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c",
			"[ ! -f \"$STATE\" ] || . \"$STATE\"\n"+step.commands+"\ndeclare -p KEY 2>/dev/null > \"$STATE\" || true")
		shell.Env, shell.Dir = environment, dir
		out, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("step %d: %v\n%s\nprinted\n%s", i+1, err, step.commands, out)
		}
		if line := missing(string(out), step.prints); line != "" {
			t.Fatalf("step %d does not print %q\n%s\nprinted\n%s", i+1, line, step.commands, out)
		}
		s.awaitEqual(g) // what was written is in force: milliseconds, unless the machine is busy
	}
}
