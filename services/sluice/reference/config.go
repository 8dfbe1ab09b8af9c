package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/services/sluice/config"
)

// Config is config.md.
func Config() ([]byte, error) {
	keys, err := config.Keys(reflect.TypeFor[config.Config]())
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("# Configuration keys\n\n" + notice + `Sources, each winning over the one before: defaults, the YAML file (` + "`--config`" + `), the environment, flags (` + "`--set key=value`" + `).
A duration has a unit (` + "`500ms`, `30s`, `1h`" + `). In the environment and with ` + "`--set`" + `, a list is separated by commas, and a list of objects is YAML:
` + "`[{name: ci, role: admin, sha256: …}]`" + `. Secrets are never printed. Unknown keys and unknown ` + "`SLUICE_`" + ` variables are errors.
`)
	defaults := config.Default()
	section := ""
	for _, k := range keys {
		if first, _, _ := strings.Cut(k.Path, "."); first != section {
			section = first
			fmt.Fprintf(&b, "\n## %s\n\n| key | type | default | environment | |\n|---|---|---|---|---|\n", section)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` | %s |\n", k.Path, k.TypeName(), code(k.Text(defaults)), k.Env, cell(k.Doc))
		for _, e := range k.Elem {
			fmt.Fprintf(&b, "| `%s[].%s` | %s | | | %s |\n", k.Path, e.Path, e.TypeName(), cell(e.Doc))
		}
	}
	b.WriteString("\n## Other variables\n\n| variable | |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(config.OtherEnv)) {
		star := ""
		if strings.HasSuffix(name, "_") {
			star = "…"
		}
		fmt.Fprintf(&b, "| `%s%s` | %s |\n", name, star, cell(config.OtherEnv[name]))
	}
	return []byte(b.String()), nil
}

// code puts a value in backquotes; an empty one stays empty.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// cell keeps a text from ending its cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "|", `\|`), "\n", " ")
}
