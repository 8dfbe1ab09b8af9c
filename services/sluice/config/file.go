package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	koanfyaml "github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"go.yaml.in/yaml/v3"
)

// document is what a file holds; a koanf.Provider.
type document map[string]any

// Read implements koanf.Provider.
func (d document) Read() (map[string]any, error) { return d, nil }

// ReadBytes implements koanf.Provider; the bytes are parsed already.
func (d document) ReadBytes() ([]byte, error) { return nil, errors.ErrUnsupported }

// readFile takes a file whole or not at all: what the YAML library passes over
// in silence, further documents among it, would be settings out of force.
func readFile(name string) (document, error) {
	raw, err := file.Provider(name).ReadBytes()
	if err != nil {
		return nil, err
	}
	// UTF-16, which YAML allows too, would make a damaged file an empty one.
	if !utf8.Valid(raw) {
		return nil, errors.New("not UTF-8 text")
	}
	if err := oneDocument(raw); err != nil {
		return nil, err
	}
	return koanfyaml.Parser().Unmarshal(raw)
}

func oneDocument(raw []byte) error {
	documents := yaml.NewDecoder(bytes.NewReader(raw))
	for n := 1; ; n++ {
		var next yaml.Node
		err := documents.Decode(&next)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n > 1:
			return fmt.Errorf("line %d begins a second YAML document (---): give one", next.Line)
		}
	}
}
