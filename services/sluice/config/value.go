package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-platform/sluice/libs/service"
)

// convert makes a value of type t from what a source gave: a string from the
// environment or a flag, anything YAML knows from a file. Errors say what would
// be right; they never hold the value of a secret.
func convert(t reflect.Type, in any) (reflect.Value, error) {
	if reflect.TypeOf(in) == t {
		return reflect.ValueOf(in), nil
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		text, ok := in.(string)
		if !ok {
			return reflect.Value{}, fmt.Errorf("%v has no unit: give a duration such as 500ms, 30s or 1h", in)
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return reflect.Value{}, fmt.Errorf("%q is no duration: give one such as 500ms, 30s or 1h", text)
		}
		return reflect.ValueOf(d), nil
	case reflect.TypeFor[service.Secret]():
		text, ok := in.(string)
		if !ok {
			return reflect.Value{}, errors.New("not a string: put the value in quotes")
		}
		return reflect.ValueOf(service.Secret(text)), nil
	}
	switch t.Kind() {
	case reflect.String:
		text, ok := in.(string)
		if !ok {
			return reflect.Value{}, fmt.Errorf("%v is not a string: put it in quotes", in)
		}
		return reflect.ValueOf(text).Convert(t), nil
	case reflect.Bool:
		return convertBool(t, in)
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		return convertInt(t, in)
	case reflect.Float64:
		f, err := strconv.ParseFloat(fmt.Sprint(in), 64)
		if err != nil {
			return reflect.Value{}, fmt.Errorf("%q is not a number", fmt.Sprint(in))
		}
		return reflect.ValueOf(f).Convert(t), nil
	case reflect.Slice:
		return convertList(t, in)
	}
	return reflect.Value{}, fmt.Errorf("type %s has no form here", t)
}

func convertBool(t reflect.Type, in any) (reflect.Value, error) {
	switch fmt.Sprint(in) {
	case "true":
		return reflect.ValueOf(true).Convert(t), nil
	case "false":
		return reflect.ValueOf(false).Convert(t), nil
	}
	return reflect.Value{}, fmt.Errorf("%q is neither true nor false", fmt.Sprint(in))
}

func convertInt(t reflect.Type, in any) (reflect.Value, error) {
	n, err := strconv.ParseInt(fmt.Sprint(in), 10, t.Bits())
	if errors.Is(err, strconv.ErrRange) {
		return reflect.Value{}, fmt.Errorf("%v is too large", in)
	}
	if err != nil {
		return reflect.Value{}, fmt.Errorf("%q is not an integer", fmt.Sprint(in))
	}
	v := reflect.New(t).Elem()
	v.SetInt(n)
	return v, nil
}

// convertList takes a YAML list, or a string: YAML in brackets, else strings
// separated by commas.
func convertList(t reflect.Type, in any) (reflect.Value, error) {
	items, ok := in.([]any)
	if text, isText := in.(string); isText {
		var err error
		if items, err = splitList(text); err != nil {
			return reflect.Value{}, err
		}
	} else if !ok {
		return reflect.Value{}, fmt.Errorf("%v is not a list", in)
	}
	list := reflect.Zero(t) // nil, as a default is, when there is none
	for i, item := range items {
		var v reflect.Value
		var err error
		if t.Elem().Kind() == reflect.Struct {
			v, err = convertStruct(t.Elem(), item)
		} else {
			v, err = convert(t.Elem(), item)
		}
		if err != nil {
			return reflect.Value{}, fmt.Errorf("element %d: %w", i, err)
		}
		list = reflect.Append(list, v)
	}
	return list, nil
}

func splitList(text string) ([]any, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "[") {
		var items []any
		if yaml.Unmarshal([]byte(text), &items) != nil {
			// The parser's own error would quote the text, which may hold secrets.
			return nil, errors.New("not a list in YAML or JSON: give [a, b] or [{name: …}]")
		}
		return items, nil
	}
	var items []any
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			items = append(items, part)
		}
	}
	return items, nil
}
