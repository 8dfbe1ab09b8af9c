package api

import (
	"bytes"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// docsTemplate is a page without scripts or anything from elsewhere, so that
// it works where the control plane does.
var docsTemplate = template.Must(template.New("docs").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title><style>
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code{font-family:ui-monospace,monospace}td{padding:.1rem .8rem .1rem 0;vertical-align:top}
h3{margin:2rem 0 .2rem}h4{margin:.6rem 0 0}.m{display:inline-block;min-width:4.5rem;font-weight:700}
</style></head><body><h1>{{.Title}} {{.Version}}</h1><p style="white-space:pre-line">{{.About}}</p>
<p>The whole contract: <a href="/openapi.yaml">/openapi.yaml</a>, <a href="/openapi.json">/openapi.json</a> (OpenAPI 3.1)</p>
{{define "fields"}}<table>{{range .}}<tr><td><code>{{.Path}}</code></td><td>{{.Type}}{{if .Required}}, required{{end}}</td><td>{{.About}}</td></tr>
{{end}}</table>{{end}}
{{range .Operations}}<h3 id="{{.ID}}"><code><span class="m">{{.Method}}</span>{{.Path}}</code></h3><p>{{.Summary}}.{{with .About}} {{.}}{{end}}</p>
{{with .Parameters}}<h4>Parameters</h4><table>{{range .}}<tr><td><code>{{.Name}}</code></td><td>{{.In}}</td><td>{{.Description}}</td></tr>
{{end}}</table>{{end}}
{{with .Request}}<h4>Request body</h4>{{template "fields" .}}{{end}}
<h4>Answers</h4><table>{{range .Answers}}<tr><td><code>{{.Status}}</code></td><td>{{with .Schema}}<a href="#schema-{{.}}">{{.}}</a>{{end}}</td><td>{{.About}}</td></tr>
{{end}}</table>
{{end}}<h2>Bodies of answers</h2>
{{range .Schemas}}<h3 id="schema-{{.Name}}">{{.Name}}</h3>{{template "fields" .Fields}}
{{end}}</body></html>
`))

// operationDocs is one operation as the page shows it.
type operationDocs struct {
	ID, Method, Path, Summary, About string
	Parameters                       []*huma.Param
	Request                          []fieldDocs
	Answers                          []answerDocs
}

// answerDocs is one status; Schema names the body, empty where there is none.
type answerDocs struct{ Status, Schema, About string }

// schemaDocs is one body of an answer.
type schemaDocs struct {
	Name   string
	Fields []fieldDocs
}

func renderDocs(doc *huma.OpenAPI) ([]byte, error) {
	var operations []operationDocs
	bodies := map[string]bool{}
	for _, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op == nil {
				continue
			}
			o := docsOf(doc.Components.Schemas, op)
			for _, a := range o.Answers {
				bodies[a.Schema] = true
			}
			operations = append(operations, o)
		}
	}
	slices.SortFunc(operations, func(a, b operationDocs) int {
		return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
	})
	delete(bodies, "")
	var schemas []schemaDocs
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		schemas = append(schemas, schemaDocs{name, fieldsOf(doc.Components.Schemas, doc.Components.Schemas.Map()[name])})
	}
	var page bytes.Buffer
	err := docsTemplate.Execute(&page, map[string]any{
		"Title": doc.Info.Title, "Version": doc.Info.Version, "About": doc.Info.Description,
		"Operations": operations, "Schemas": schemas,
	})
	return page.Bytes(), err
}

func docsOf(schemas huma.Registry, op *huma.Operation) operationDocs {
	o := operationDocs{
		ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, About: op.Description, Parameters: op.Parameters,
	}
	if op.RequestBody != nil {
		o.Request = fieldsOf(schemas, op.RequestBody.Content["application/json"].Schema)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) { // default sorts after the numbers
		answer := answerDocs{Status: status, About: op.Responses[status].Description}
		for _, content := range op.Responses[status].Content {
			answer.Schema = nameOf(content.Schema)
		}
		o.Answers = append(o.Answers, answer)
	}
	return o
}
