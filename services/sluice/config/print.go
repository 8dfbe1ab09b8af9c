package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-platform/sluice/libs/service"
)

// YAML writes the configuration as a file that Load takes, secrets masked.
// With sources, a comment behind each value says where it came from.
func (l *Loaded) YAML(sources bool) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	sections := map[string]*yaml.Node{"": root}
	config := reflect.ValueOf(l.Config)
	for _, k := range l.keys {
		node, err := k.encode(config.FieldByIndex(k.index))
		if err != nil {
			return nil, fmt.Errorf("print %s: %w", k.Path, err)
		}
		if sources {
			node.LineComment = "default"
			if from, ok := l.Sources[k.Path]; ok {
				node.LineComment = from
			}
		}
		parent, name := section(sections, k.Path)
		parent.Content = append(parent.Content, scalar(name), node)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(root), encoder.Close()); err != nil {
		return nil, fmt.Errorf("print configuration: %w", err)
	}
	return out.Bytes(), nil
}

// section returns the mapping a path's last part belongs to, made where missing.
func section(sections map[string]*yaml.Node, path string) (*yaml.Node, string) {
	cut := strings.LastIndexByte(path, '.')
	if cut < 0 {
		return sections[""], path
	}
	above, name := path[:cut], path[cut+1:]
	if node, ok := sections[above]; ok {
		return node, name
	}
	node := &yaml.Node{Kind: yaml.MappingNode}
	parent, own := section(sections, above)
	parent.Content = append(parent.Content, scalar(own), node)
	sections[above] = node
	return node, name
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// durationText is 1m where Go says 1m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if cut, ok := strings.CutSuffix(text, "m0s"); ok {
		text = cut + "m"
	}
	if cut, ok := strings.CutSuffix(text, "h0m"); ok {
		text = cut + "h"
	}
	return text
}

// encode gives a value its YAML form: durations with units, secrets masked (by
// their MarshalText), lists in one line.
func encode(v reflect.Value) (*yaml.Node, error) {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		return scalar(durationText(time.Duration(v.Int()))), nil
	case v.Kind() == reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for i := range v.Len() {
			item, err := encode(v.Index(i))
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, item)
		}
		return list, nil
	case v.Kind() == reflect.Struct:
		return encodeStruct(v)
	case v.Type().Kind() == reflect.String && v.Type() != reflect.TypeFor[service.Secret]():
		return encodeText(maskUserinfo(v.String()))
	}
	node := new(yaml.Node)
	return node, node.Encode(v.Interface())
}

func encodeText(text string) (*yaml.Node, error) {
	node := new(yaml.Node)
	return node, node.Encode(text)
}

// encode gives the key's value its YAML form.
func (k Key) encode(v reflect.Value) (*yaml.Node, error) {
	if secret, ok := v.Interface().(service.Secret); ok && k.isURL {
		return encodeText(maskPassword(secret))
	}
	return encode(v)
}

// encodeStruct writes one element of a list of objects, its sections as
// objects of their own.
func encodeStruct(v reflect.Value) (*yaml.Node, error) {
	keys, err := Keys(v.Type())
	if err != nil {
		return nil, err
	}
	object := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	sections := map[string]*yaml.Node{"": object}
	for _, k := range keys {
		value, err := k.encode(v.FieldByIndex(k.index))
		if err != nil {
			return nil, err
		}
		parent, name := section(sections, k.Path)
		parent.Content = append(parent.Content, scalar(name), value)
	}
	return object, nil
}

// Text is the key's value in c as a user would write it, empty for none. It
// shows secrets and is meant for the reference of defaults alone.
func (k Key) Text(c Config) string {
	v := reflect.ValueOf(c).FieldByIndex(k.index)
	if k.Secret() {
		return v.String()
	}
	node, err := encode(v)
	if err != nil || (v.Kind() == reflect.Slice && v.Len() == 0) {
		return ""
	}
	if node.Kind == yaml.ScalarNode {
		return node.Value
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
