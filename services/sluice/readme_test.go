package sluice

import (
	"os"
	"strings"
	"testing"
)

// The README's table names every command, and those below it.
func TestReadmeNamesEveryCommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "| `sluice "); ok {
			rows[strings.FieldsFunc(name, func(r rune) bool { return r == ' ' || r == '`' })[0]] = line
		}
	}
	for _, cmd := range NewCommand().Commands() {
		row, ok := rows[cmd.Name()]
		if !ok {
			t.Errorf("the table of commands has no row for sluice %s", cmd.Name())
		}
		delete(rows, cmd.Name())
		for _, below := range cmd.Commands() {
			if !strings.Contains(row, "`"+below.Name()+"`") {
				t.Errorf("the row of sluice %s does not name %s", cmd.Name(), below.Name())
			}
		}
	}
	for name := range rows {
		t.Errorf("there is no sluice %s", name)
	}
}
