//go:build integration

package client

import (
	"strings"
	"testing"
)

// What only the control plane can judge is judged of a whole file before any of
// it is written.
func TestApplyWritesNothingOfAFileThatWouldBeRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.must(t, yamlRules, "rules", "apply", "-f", "-")
	before := s.must(t, "", "rules", "list", "-o", "json")
	rest := "subject: {kind: tenant, value: '*'}\nmetric: m\nunlimited: true\n"
	file := "id: a-good\n" + rest +
		"---\nid: b-ended\nvalidUntil: 2001-01-01T00:00:00Z\n" + rest +
		"---\nid: c-good\n" + rest +
		"---\nid: d-far\nvalidFrom: 9000-01-01T00:00:00Z\n" + rest
	for _, more := range [][]string{nil, {"--dry-run"}, {"--prune"}} {
		out, err := s.sluice(t, file, append([]string{"rules", "apply", "-f", "-"}, more...)...)
		if err == nil || out != "" {
			t.Fatalf("%v: %v\n%s", more, err, out)
		}
		holds(t, err.Error(), "nothing was changed, since the control plane would refuse 2 of ", `create rule "b-ended": standard input: document 2 (line 6)`,
			"validUntil: must be after", `create rule "d-far": standard input: document 4`, "validFrom: must be")
		if strings.Contains(err.Error(), "c-good") {
			t.Errorf("names what is good: %v", err)
		}
		if after := s.must(t, "", "rules", "list", "-o", "json"); after != before {
			t.Errorf("%v left\n%s", more, after)
		}
	}
	checked := "checked by the control plane, which would take every change: 1 of 1\n+ create rule a-good\n"
	if out := s.must(t, "id: a-good\n"+rest, "rules", "apply", "-f", "-", "--dry-run"); !strings.HasPrefix(out, checked) {
		t.Errorf("a dry run prints\n%s", out)
	}
	if out := s.must(t, "id: a-good\n"+rest, "rules", "apply", "-f", "-"); !strings.HasPrefix(out, checked) {
		t.Errorf("prints\n%s", out)
	}
}

// A document as get printed it carries its version, and undoes no change that
// came after, of whatever kind it is.
func TestApplyRefusesWhatWasGotBeforeAnotherChange(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, one := range []struct{ kind, key, document, before, after string }{
		{"rules", "a", "id: a\nsubject: {kind: tenant, value: '*'}\nmetric: m\nlimit: {algorithm: gcra, limit: 5, window: 1m}\n", "limit: 5", "limit: 6"},
		{"overrides", "tenant:acme:m", "subject: {kind: tenant, value: acme}\nmetric: m\nlimit: 5\n", "limit: 5", "limit: 6"},
		{"services", "demo", "name: demo\nprefix: /demo/\nupstreams: [{url: 'http://127.0.0.1:9000'}]\n", "9000", "9001"},
		{"customers", "acme", "id: acme\nname: Acme\n", "name: Acme", "name: Acme Ltd"},
		{"plans", "pro", "id: pro\nname: Pro\ncurrency: EUR\nrules: [{metric: m, unlimited: true}]\n", "name: Pro", "name: Professional"},
	} {
		apply := []string{one.kind, "apply", "-f", "-"}
		s.must(t, one.document, apply...)
		old := s.must(t, "", one.kind, "get", one.key)
		s.must(t, strings.Replace(one.document, one.before, one.after, 1), apply...)
		now := s.must(t, "", one.kind, "get", one.key)
		for _, more := range [][]string{nil, {"--dry-run"}} {
			s.refused(t, "get it again, or leave version out", old, append(apply, more...)...)
		}
		if is := s.must(t, "", one.kind, "get", one.key); is != now {
			t.Errorf("%s: a change was undone:\n%s", one.kind, is)
		}
		holds(t, s.must(t, now, apply...), "1 unchanged")
		holds(t, s.must(t, one.document, apply...), "1 updated")
	}
}

// A service may take the prefix that another of the same file gives away; one
// that nobody gives away is refused before anything is written.
func TestApplyChecksServicesThatPassOnAPrefix(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	service := func(name, prefix string) string {
		return "---\nname: " + name + "\nprefix: " + prefix + "\nupstreams: [{url: 'http://127.0.0.1:9000'}]\n"
	}
	apply := []string{"services", "apply", "-f", "-"}
	s.must(t, service("a", "/a/")+service("b", "/b/"), apply...)
	holds(t, s.must(t, service("a", "/new/")+service("b", "/a/")+service("c", "/b/"), apply...), "1 created, 2 updated")
	s.refused(t, "prefix: must be a prefix that no other service has", service("a", "/a2/")+service("d", "/b/"), apply...)
	s.refused(t, `prefix: "/d/" is in standard input: document 1 (line 3) too; each service has its own`, service("d", "/d/")+service("e", "/d/"), apply...)
	list := s.must(t, "", "services", "list")
	if holds(t, list, "/new/", "/a/", "/b/"); strings.Contains(list, "/a2/") || strings.Contains(list, "/d/") {
		t.Errorf("something of a refused file was written\n%s", list)
	}
}

// Whoever may read only sees what would change, and that nobody has tried it.
func TestDryRunWithATokenThatMayReadOnly(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	reader := []string{"rules", "apply", "-f", "-", "--token", readOnlyToken}
	out, warnings, err := s.run(t, yamlRules, append(reader, "--dry-run")...)
	if err != nil || !strings.Contains(out, "it would be: 3 created") || !strings.Contains(warnings, "not checked by the control plane") {
		t.Errorf("%v\n%s\nwarns %s", err, out, warnings)
	}
	if _, err := s.sluice(t, yamlRules, reader...); err == nil || !strings.Contains(err.Error(), "may read only") || strings.Count(err.Error(), "may read only") != 1 {
		t.Errorf("says %v", err)
	}
}

// What a document of another kind looks like the control plane says, in place of each
// field that is none of this kind.
func TestApplyNamesTheKindThatADocumentLooksLike(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for document, says := range map[string]string{
		"id: pro\nname: Pro\ncurrency: EUR\nrules: [{metric: m}]\n":                "standard input: document 1 (line 1): looks like a plan, which has currency and rules, and not like a rule; plans are written to /v1/plans (sluice plans apply)",
		"name: demo\nprefix: /demo/\nupstreems: []\nendpoints: []\n":               "looks like a service",
		"id: acme\nname: Acme\ntimezone: UTC\n":                                    "looks like a customer",
		"subject: {kind: tenant, value: a}\nmetric: m\nlimit: 5\nreason: launch\n": "looks like an override",
	} {
		s.refused(t, says, document, "rules", "apply", "-f", "-")
	}
}

// A dry run judges the documents of one apply beside each other.
func TestDryRunWarnsOfDocumentsBesideEachOther(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	const rest = "subject: {kind: tenant, value: '*'}\nmetric: m\nlimit: {algorithm: gcra, limit: 5, window: 1m}\n"
	_, warnings, err := s.run(t, "id: a\n"+rest+"---\nid: b\n"+rest, "rules", "apply", "-f", "-", "--dry-run")
	if err != nil || !strings.HasPrefix(warnings, "warning: rule b never holds: rule a has") {
		t.Errorf("%v, warns %s", err, warnings)
	}
}
