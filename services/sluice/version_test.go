package sluice

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionOf(t *testing.T) {
	t.Parallel()
	built := func(module string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: module}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for name, c := range map[string]struct {
		set  string
		info *debug.BuildInfo
		want string
	}{
		"set by the linker":           {"v1.2.3", built("v0.0.1", commit), "v1.2.3"},
		"go install of a version":     {"", built("v0.0.1", commit), "v0.0.1"},
		"go build in a clone":         {"", built("(devel)", commit), "0123456789ab"},
		"go build in a changed clone": {"", built("(devel)", commit, modified), "0123456789ab-dirty"},
		"go build of an archive":      {"", built("(devel)"), "unknown"},
		"no build information":        {"", nil, "unknown"},
	} {
		if got := versionOf(c.set, c.info); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The linker ignores -X for a name that does not exist, so the program that
// make builds is asked.
func TestMakeBuildSetsVersion(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "sluice")
	build := exec.Command("make", "-C", "../..", "build", "BINARY="+binary, "VERSION=v9.8.7-test")
	// A make that runs this test must not hand its own variables on.
	build.Env = append(os.Environ(), "MAKEFLAGS=", "MAKEOVERRIDES=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	out, err := exec.Command(binary, "version").Output()
	if want := "sluice v9.8.7-test " + runtime.Version(); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("sluice version prints %q (%v), want %q", out, err, want)
	}
}

// The image is built with the linker flag that `make build` uses.
func TestDockerfileSetsVersion(t *testing.T) {
	t.Parallel()
	flag := regexp.MustCompile(`-X (\S+)=`)
	named := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := flag.FindStringSubmatch(string(text))
		if m == nil {
			t.Fatalf("%s has no -X", path)
		}
		return m[1]
	}
	if makes, docker := named("../../Makefile"), named("../../deploy/docker/Dockerfile"); makes != docker {
		t.Errorf("the Dockerfile sets %s, the Makefile %s", docker, makes)
	}
}
