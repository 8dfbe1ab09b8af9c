package controlplane

import (
	"bytes"
	"html/template"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

const apiAbout = `Rules, services, API keys, audit and usage of a Sluice deployment.

Every error is a problem (RFC 9457) whose errors name each wrong field. Changes need If-Match (428 without, 412 when
stale, * for any version); what GET answers can be PUT back. Lists are pages: pass next as cursor. Bodies are JSON in
UTF-8 of at most 1 MB, in which unknown fields are refused.`

// docsTemplate is a page without scripts or anything from elsewhere, so that
// it works where the control plane does.
var docsTemplate = template.Must(template.New("docs").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title><style>
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code{font-family:ui-monospace,monospace}td{padding:.1rem .8rem .1rem 0;vertical-align:top}
h3{margin:1.6rem 0 .2rem}.m{display:inline-block;min-width:4.5rem;font-weight:700}
</style></head><body><h1>{{.Title}} {{.Version}}</h1><p style="white-space:pre-line">{{.About}}</p>
<p>The whole contract: <a href="/openapi.yaml">/openapi.yaml</a>, <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1)</p>
{{range .Operations}}<h3><code><span class="m">{{.Method}}</span>{{.Path}}</code></h3><p>{{.Summary}}</p>
<table>{{range .Parameters}}<tr><td><code>{{.Name}}</code></td><td>{{.In}}</td><td>{{.Description}}</td></tr>{{end}}</table>
{{end}}</body></html>
`))

func renderDocs(doc *huma.OpenAPI) ([]byte, error) {
	var operations []*huma.Operation
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op != nil {
				operations = append(operations, op)
			}
		}
	}
	slices.SortStableFunc(operations, func(a, b *huma.Operation) int {
		return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
	})
	var page bytes.Buffer
	err := docsTemplate.Execute(&page, map[string]any{
		"Title": doc.Info.Title, "Version": doc.Info.Version, "About": doc.Info.Description, "Operations": operations,
	})
	return page.Bytes(), err
}
