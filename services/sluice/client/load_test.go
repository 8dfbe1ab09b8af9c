package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const yamlRules = `# two documents, the second a list
id: hello
subject: {kind: tenant, value: "*"}
metric: hellos
limit: {algorithm: gcra, limit: 30, window: 1m}
---
# nothing here
---
- id: report
  subject: {kind: tenant, value: acme}
  metric: reports
  limit: {algorithm: quota, kind: renewing, limit: 9007199254740991, period: month}
  mode: off
- {"id": "free", "subject": {"kind": "tenant", "value": "acme"}, "metric": "m", "unlimited": true}
`

func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func holds(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
}

func TestLoadReadsAllForms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "a.yaml", yamlRules)
	writeFile(t, dir, "sub/b.json", "[\n\t{\"id\":\"j1\",\"subject\":{\"kind\":\"tenant\",\"value\":\"*\"},\"metric\":\"m\",\"unlimited\":true}\n]")
	writeFile(t, dir, "notes.txt", "not a rule")
	documents, err := load([]string{dir, "-"}, strings.NewReader("id: in\nsubject: {kind: tenant, value: '*'}\nmetric: m\nunlimited: true\n"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := ruleKind.decodeAll(documents, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"hello", "report", "free", "j1", "in"} {
		if _, there := want[id]; !there {
			t.Errorf("%s is missing", id)
		}
	}
	if got := want["report"]; len(want) != 5 || *got.value.Limit.Limit != 9007199254740991 || got.value.Mode != "off" || got.value.OnStoreLoss != "closed" {
		t.Errorf("%d rules, report is %+v", len(want), got.value)
	}
}

func TestMistakesNameFileDocumentAndField(t *testing.T) {
	t.Parallel()
	good := "id: a\nsubject: {kind: tenant, value: '*'}\nmetric: m\nunlimited: true\n"
	cases := []struct{ name, file, content, says string }{
		{"unknown field", "r.yaml", good + "---\n" + good + "colour: red\n", "r.yaml: document 2 (line 10): colour: is not a field here; there are id"},
		{"misspelt field", "r.yaml", good + "onStoreLos: open\n", "r.yaml: document 1 (line 5): onStoreLos: is not a field here; did you mean onStoreLoss?"},
		{"misspelt below", "r.yaml", "id: a\nsubject: {kind: tenant, value: '*'}\nmetric: m\nlimit:\n  algorithm: gcra\n  limit: 5\n  windw: 1m\n",
			"(line 7): limit.windw: is not a field here; did you mean window?"},
		{"wrong value below", "r.yaml", "id: a\nsubject: {kind: tenant, value: '*'}\nmetric: m\nlimit:\n  algorithm:\n    leaky\n  limit: 5\n", "(line 5): limit.algorithm: must be one of"},
		{"missing below", "r.yaml", "id: a\nsubject: {kind: tenant, value: '*'}\nmetric: m\nlimit:\n  algorithm: gcra\n  limit: 5\n", "(line 4): limit.window: must be"},
		{"in an array", "r.yaml", good + "refundOn:\n- 5xx\n- 6xx\n", "(line 7): refundOn[1]: must be 5xx"},
		{"bare star", "r.yaml", strings.Replace(good, "'*'", "*", 1), "r.yaml (line 2): value: must be quoted, as in value: '*': YAML"},
		{"bare star in the first line", "r.yaml", "subject: {kind: tenant, value: *}\n", "r.yaml (line 1): value: must be quoted, as in value: '*'"},
		{"bare star in a block", "r.yaml", "id: a\nsubject:\n  kind: tenant\n  value: * # all\n", "(line 4): value: must be quoted, as in value: '*'"},
		{"bare star in a list", "r.yaml", good + "refundOn:\n- *\n", "(line 6): must be quoted, as in '*'"},
		{"alias that nobody is", "r.yaml", good + "---\nid: b\nsubject: {kind: user, value: *everyone}\n", "r.yaml (line 7): value: must be quoted, as in value: '*everyone'"},
		{"reserved", "r.yaml", "id: a\nname: @home\n", "(line 2): name: must be quoted, as in name: '@home'"},
		{"tab", "r.yaml", "id: a\nsubject:\n\tkind: tenant\n", "(line 3): must be indented by spaces"},
		{"wrong type", "r.yaml", "id: 7\n", "r.yaml: document 1 (line 1): id: must be a string, not the number 7"},
		{"meaning", "r.yaml", strings.Replace(good, "tenant", "planet", 1), "document 1 (line 2): subject.kind: must be one of"},
		{"in a list", "r.yaml", "- {id: x}\n- {idd: y}\n", "document 1 (line 2): idd: is not a field here; did you mean id?"},
		{"twice", "r.yaml", good + "---\n" + good, `rule "a" is in`},
		{"no id", "r.yaml", strings.Replace(good, "id: a\n", "", 1), "id: must be 1 to 128"},
		{"not YAML", "r.yaml", good + "---\n\tx", "r.yaml (line 6): must be indented by spaces"},
		{"no YAML of another sort", "r.yaml", "id: a\n b: c\n", "r.yaml (line 2): mapping values are not allowed"},
		{"key twice", "r.yaml", good + "metric: n\n", "r.yaml: document 1 (line 5): metric is given twice"},
		{"key twice below", "r.yaml", strings.Replace(good, "kind: tenant", "kind: tenant, kind: user", 1), "(line 2): kind is given twice"},
		{"two without a mark", "r.yaml", good + good, "r.yaml: document 1 (line 5): id is given twice; where another document begins here, start each with `- `, or put a line of ---"},
		{"number as a name", "r.yaml", "1: 2\n", "field names are strings"},
		{"text", "r.yaml", "hello\n", "must be an object, not a string"},
		{"JSON", "r.json", "{\n\"id\": }", "r.json: is not JSON: line 2, column 7"},
		{"JSON list", "r.json", `[{"id":"a"},{"x":1}]`, "r.json: item 2 (line 1): x: is not a field"},
		{"JSON field", "r.json", "{\n\t\"id\": \"a\",\n\t\"metrics\": \"m\"}", "r.json (line 3): metrics: is not a field here; did you mean metric?"},
		{"empty JSON", "r.json", "", "r.json: must be a JSON object, but is empty"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := writeFile(t, t.TempDir(), c.file, c.content)
			documents, err := load([]string{path}, nil)
			if err == nil {
				_, err = ruleKind.decodeAll(documents, nil)
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
				t.Fatalf("says %v, want …%s…", err, c.says)
			}
		})
	}
	if _, err := load([]string{"/nowhere/r.yaml"}, nil); err == nil || !strings.Contains(err.Error(), "/nowhere/r.yaml") {
		t.Errorf("a missing file: %v", err)
	}
}

// Mistakes are told in the order of lines, one for each thing that is wrong.
func TestMistakesAreToldOnceAndInOrder(t *testing.T) {
	t.Parallel()
	limit := func(limit string) string {
		return "id: a\nsubject: {kind: tenant, value: '*'}\nmetric: m\nlimit: {algorithm: gcra, limit: " + limit + ", burst: 5, window: 1m}\n"
	}
	for content, want := range map[string][]string{
		limit(`"600"`): {"(line 4): limit.limit:"},
		limit("6.5"):   {"(line 4): limit.limit:"},
		strings.Replace(limit("6"), "metric", "metrik", 1):                                                              {"(line 3): metrik:"},
		strings.Replace(limit("6"), "limit:", "limits:", 1):                                                             {"(line 4): limits:"},
		"colour: red\npriority: x\nid: a\nmode: never\nmetric: m\nunlimited: true\nsubject: {kind: planet, value: a}\n": {"(line 1): colour:", "(line 2): priority:", "(line 4): mode:", "(line 7): subject.kind:"},
	} {
		documents, err := load([]string{"-"}, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		_, err = ruleKind.decodeAll(documents, nil)
		if err == nil {
			t.Errorf("%s is taken", content)
			continue
		}
		got := strings.Split(err.Error(), "\n")[1:]
		if len(got) != len(want) {
			t.Errorf("%s says\n%v", content, err)
			continue
		}
		for i := range want {
			holds(t, got[i], want[i])
		}
	}
}
