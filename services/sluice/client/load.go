package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is one object of a file, still as JSON, and where it was written.
type document struct {
	place string     // rules.yaml: document 2
	node  *yaml.Node // the object as it was read, for the lines of its fields; nil where they are not known
	data  []byte
}

// where is the document's beginning: rules.yaml: document 2 (line 14).
func (d document) where() string { return d.at("") }

// load reads files, folders (every .yaml, .yml and .json below, in order of
// their names) and - for standard input.
func load(paths []string, stdin io.Reader) ([]document, error) {
	var documents []document
	for _, path := range paths {
		files, err := filesAt(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			found, err := loadFile(file, stdin)
			if err != nil {
				return nil, err
			}
			documents = append(documents, found...)
		}
	}
	return documents, nil
}

func filesAt(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err // names the path
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(name) {
		case ".yaml", ".yml", ".json":
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

func loadFile(name string, stdin io.Reader) ([]document, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(stdin)
		name = "standard input"
	} else {
		data, err = os.ReadFile(name)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case filepath.Ext(name) == ".json":
		return splitJSON(name, data)
	default:
		return splitYAML(name, data)
	}
}

// splitJSON takes an object, or a list of them. What is JSON is YAML too, which
// knows its lines.
func splitJSON(name string, data []byte) ([]document, error) {
	var root yaml.Node
	var nodes []*yaml.Node
	if json.Valid(data) && yaml.Unmarshal(data, &root) == nil {
		nodes = objectsOf(&root)
	}
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 || trimmed[0] != '[' {
		return []document{{name, nodeAt(nodes, 0), data}}, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		return nil, fmt.Errorf("%s: is not JSON: %w", name, err)
	}
	documents := make([]document, len(items))
	for i, item := range items {
		documents[i] = document{fmt.Sprintf("%s: item %d", name, i+1), nodeAt(nodes, i), item}
	}
	return documents, nil
}

func nodeAt(nodes []*yaml.Node, i int) *yaml.Node {
	if i >= len(nodes) {
		return nil
	}
	return nodes[i]
}

// splitYAML takes several documents, each an object or a list of them.
func splitYAML(name string, data []byte) ([]document, error) {
	var documents []document
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for number := 1; ; number++ {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s%s", name, yamlMistake(data, err)) // its document is not always known: the parser reads ahead
		}
		for _, node := range objectsOf(&root) {
			d := document{place: fmt.Sprintf("%s: document %d", name, number), node: node}
			if name := twice(node); name != nil {
				return nil, fmt.Errorf("%s (line %d): %s is given twice%s", d.place, name.Line, name.Value, twoInOne(node, name))
			}
			if d.data, err = toJSON(node); err != nil {
				return nil, fmt.Errorf("%s: %w", d.where(), err)
			}
			documents = append(documents, d)
		}
	}
}

// objectsOf returns the document's object, or its list's items; nothing for an
// empty document, such as a comment between two separators.
func objectsOf(root *yaml.Node) []*yaml.Node {
	if len(root.Content) == 0 {
		return nil
	}
	node := root.Content[0]
	switch {
	case node.Kind == yaml.SequenceNode:
		return node.Content
	case node.Tag == "!!null":
		return nil
	}
	return []*yaml.Node{node}
}

// toJSON writes a YAML value as JSON, which is then decoded like a request.
func toJSON(node *yaml.Node) ([]byte, error) {
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, errors.New("has a value or field name that JSON cannot hold; field names are strings")
	}
	return data, nil
}
