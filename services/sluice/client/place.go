package client

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-platform/sluice/libs/strictjson"
)

// at is where a field of the document was written, or where it should have
// been: the line of what of its path is there.
func (d document) at(field string) string {
	if d.node == nil {
		return d.place
	}
	return fmt.Sprintf("%s (line %d)", d.place, lineOf(d.node, field))
}

// sortByLine puts mistakes in the order of the document, as an editor goes
// through them; those of a line stay in theirs.
func (d document) sortByLine(mistakes []strictjson.FieldError) {
	if d.node == nil {
		return
	}
	slices.SortStableFunc(mistakes, func(a, b strictjson.FieldError) int {
		return cmp.Compare(lineOf(d.node, a.Field), lineOf(d.node, b.Field))
	})
}

// lineOf follows a path such as limit.window or upstreams[1].url.
func lineOf(node *yaml.Node, path string) int {
	line := node.Line
	for node != nil && path != "" {
		node, path = below(node, path)
		if node != nil {
			line = node.Line
		}
	}
	return line
}

// below takes the first step of a path; it returns the value, nil if there is
// none, and the rest of the path. A value on a line after its name counts as
// its name's.
func below(node *yaml.Node, path string) (*yaml.Node, string) {
	if node.Kind == yaml.SequenceNode {
		number, rest, _ := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(node.Content) {
			return nil, ""
		}
		return node.Content[i], strings.TrimPrefix(rest, ".")
	}
	if node.Kind != yaml.MappingNode {
		return nil, ""
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], *node.Content[i+1]
		rest, found := strings.CutPrefix(path, name.Value)
		if found && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			value.Line = name.Line
			return &value, strings.TrimPrefix(rest, ".")
		}
	}
	return nil, ""
}

// twice finds the first name that an object at node or below gives again.
func twice(node *yaml.Node) *yaml.Node {
	names := map[string]bool{}
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.ScalarNode {
			if names[child.Value] && child.Tag != "!!merge" {
				return child
			}
			names[child.Value] = true
			continue
		}
		if found := twice(child); found != nil {
			return found
		}
	}
	return nil
}

// twoInOne says what would be right where a document's own first field comes
// again: another document begins there.
func twoInOne(root, again *yaml.Node) string {
	if len(root.Content) == 0 || root.Content[0].Value != again.Value || !slices.Contains(root.Content, again) {
		return ""
	}
	return "; where another document begins here, start each with `- `, or put a line of --- between them"
}

var (
	// unquoted is a value that YAML takes for something else than a text, an
	// alias or what is reserved, and the name before it.
	unquoted = regexp.MustCompile("(?:([\\w.-]+)[\"']?\\s*:\\s+|(?:^|\\s)-\\s+|[\\[,]\\s*)([*@`%][^\\s,\\]}]*)")
	lineText = regexp.MustCompile(`^line (\d+): `)
)

// yamlMistake says where a text is no YAML, and of a value that has to be
// quoted, such as a subject's *, what would be right.
func yamlMistake(data []byte, err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1 // the parser leaves out the first
	if m := lineText.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits, by the expression
		text = text[len(m[0]):]
	}
	lines := strings.Split(string(data), "\n")
	if anchor, unknown := strings.CutPrefix(text, "unknown anchor '"); unknown { // which comes without its line
		anchor, _, _ = strings.Cut(anchor, "'")
		line = 1 + lineWith(lines, "*"+anchor)
	}
	if hint := hintOf(text, lines, line); hint != "" {
		text = hint
	}
	return fmt.Sprintf(" (line %d): %s", line, text)
}

// lineWith is the index of the first line with that value; 0 if there is none.
func lineWith(lines []string, value string) int {
	for i, l := range lines {
		if m := unquoted.FindStringSubmatch(l); m != nil && m[2] == value {
			return i
		}
	}
	return 0
}

// hintOf says what would be right in a line, counted from 1, where the parser's
// text is about the bytes that a value begins with; else it is empty.
func hintOf(text string, lines []string, line int) string {
	bytewise := strings.Contains(text, "cannot start any token") || strings.Contains(text, "alphabetic or numeric") || strings.Contains(text, "unknown anchor")
	if !bytewise || line > len(lines) {
		return ""
	}
	code, _, _ := strings.Cut(lines[line-1], " #")
	if strings.Contains(code[:len(code)-len(strings.TrimLeft(code, " \t"))], "\t") {
		return "must be indented by spaces: YAML takes no tab there"
	}
	m := unquoted.FindStringSubmatch(code)
	if m == nil {
		return ""
	}
	field := ""
	if m[1] != "" {
		field = m[1] + ": "
	}
	return fmt.Sprintf("%smust be quoted, as in %s'%s': YAML takes a bare %c for something else than text", field, field, m[2], m[2][0])
}
