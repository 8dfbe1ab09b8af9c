package house_test

import (
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// Every relative link of every document leads somewhere.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, doc := range documents(t) {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			checked++
			if _, err := os.Stat(filepath.Join(filepath.Dir(doc), m[1])); err != nil {
				t.Errorf("%s: link to %s leads nowhere", doc, m[1])
			}
		}
	}
	if checked < 10 {
		t.Fatalf("checked only %d links", checked)
	}
}

// The README's table of rooms names every room, and its commands exist.
func TestReadmeNamesRoomsAndCommands(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	for _, room := range rooms(t) {
		if !strings.Contains(readme, "services/"+room) {
			t.Errorf("README.md does not name room services/%s", room)
		}
	}
	targets := read(t, "Makefile")
	for _, m := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(readme, -1) {
		if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(targets) {
			t.Errorf("README.md says make %s, which the Makefile does not have", m[1])
		}
	}
}

// The first screen is what a newcomer sees before scrolling.
func TestReadmeStartsWithTheTwoCommands(t *testing.T) {
	t.Parallel()
	lines := strings.SplitN(read(t, "README.md"), "\n", 61)
	first := strings.Join(lines[:min(60, len(lines))], "\n")
	for _, want := range []string{"make run", "make test", "| room |"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first 60 lines of README.md lack %q", want)
		}
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	var docs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "data" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			docs = append(docs, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var testName = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")

// A guarantee is shown by a test that exists, and so is whatever else a page
// says of a test.
func TestGuaranteesAreShown(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	for _, src := range sources(t) {
		for _, decl := range src.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && src.test() {
				tests[fn.Name.Name] = true
			}
		}
	}
	if named := testName.FindAllString(read(t, "docs/guarantees.md"), -1); len(named) < 15 {
		t.Fatalf("docs/guarantees.md names only %d tests", len(named))
	}
	for _, doc := range documents(t) {
		page, err := filepath.Rel(root, doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testName.FindAllStringSubmatch(read(t, page), -1) {
			if !tests[m[1]] {
				t.Errorf("%s names %s, which no test file has", page, m[1])
			}
		}
	}
}

// What a page quotes of an example is in the example, which is run.
func TestQuotedExampleIsTheOneThatRuns(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(read(t, "docs/walks/cache-stampede.md"), "(../../libs/cache/example_test.go)")
	_, rest, _ = strings.Cut(rest, "```go\n")
	quote, _, found := strings.Cut(rest, "```")
	if !found || strings.Count(quote, "\n") < 8 {
		t.Fatalf("the page quotes %q", quote)
	}
	example := read(t, "libs/cache/example_test.go")
	for line := range strings.Lines(quote) {
		line = strings.TrimSpace(line)
		_, behind, found := strings.Cut(example, line)
		if line == "// …" {
			continue
		}
		if !found {
			t.Fatalf("the example has no %q behind the lines before it", line)
		}
		example = behind
	}
}
