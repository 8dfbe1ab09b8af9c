package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/sluice-platform/sluice/libs/service"
)

// EnvPrefix starts the name of every environment variable of ours.
const EnvPrefix = "SLUICE_"

// Key is one leaf of the configuration.
type Key struct {
	// Path is the dotted path, as in YAML and --set.
	Path string
	// Env is the environment variable.
	Env string
	// Doc is the field's doc tag, one sentence or two, with units.
	Doc string
	// Type is the Go type of the value.
	Type reflect.Type
	// Elem are the keys of one element, where the value is a list of structs.
	Elem []Key

	index []int // of the field, from the root struct
	// isURL: a secret for its password alone; the rest of it is shown.
	isURL bool
}

// Secret says that the value is never shown, or of a URL not its password.
func (k Key) Secret() bool { return k.Type == reflect.TypeFor[service.Secret]() }

// TypeName is what a user calls the type.
func (k Key) TypeName() string { return typeName(k.Type) }

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t == reflect.TypeFor[service.Secret]():
		return "secret"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return "list of objects"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem()) + "s"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	default:
		return t.Kind().String()
	}
}

// Keys lists the leaves of a configuration struct in the order of its fields.
// Every field has a koanf tag, every leaf a doc tag; a field of a type no
// source can give is an error. All of that is a programmer's mistake.
func Keys(root reflect.Type) ([]Key, error) { return walk(root, "", nil) }

func walk(t reflect.Type, prefix string, index []int) ([]Key, error) {
	var keys []Key
	for i := range t.NumField() {
		field := t.Field(i)
		at := append(append([]int(nil), index...), i)
		name, option, _ := strings.Cut(field.Tag.Get("koanf"), ",")
		path := name
		if prefix != "" {
			path = prefix + "." + name
		}
		if name == "-" {
			continue // set by the program, not by a user
		}
		if option == "squash" {
			path = prefix
		} else if name == "" {
			return nil, fmt.Errorf("%s.%s: no koanf tag", t, field.Name)
		}
		if field.Type.Kind() == reflect.Struct {
			below, err := walk(field.Type, path, at)
			if err != nil {
				return nil, err
			}
			keys = append(keys, below...)
			continue
		}
		key, err := leaf(field, path, at)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, field.Name, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func leaf(field reflect.StructField, path string, index []int) (Key, error) {
	key := Key{Path: path, Env: EnvName(path), Doc: field.Tag.Get("doc"), Type: field.Type, index: index, isURL: field.Tag.Get("form") == "url"}
	if key.Doc == "" {
		return Key{}, fmt.Errorf("no doc tag")
	}
	if !supported(field.Type) {
		return Key{}, fmt.Errorf("type %s has no form in YAML here", field.Type)
	}
	if field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct {
		elem, err := Keys(field.Type.Elem())
		if err != nil {
			return Key{}, err
		}
		key.Elem = elem
	}
	return key, nil
}

func supported(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Float64:
		return true
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Struct || (t.Elem().Kind() != reflect.Slice && supported(t.Elem()))
	default:
		return false
	}
}

// EnvName is the environment variable of a key: gateway.spool.sizeBytes is
// SLUICE_GATEWAY_SPOOL_SIZE_BYTES.
func EnvName(path string) string {
	var b strings.Builder
	b.WriteString(EnvPrefix)
	var last rune
	for _, r := range path {
		switch {
		case r == '.':
			b.WriteByte('_')
		case unicode.IsUpper(r) && (unicode.IsLower(last) || unicode.IsDigit(last)):
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ToUpper(r))
		}
		last = r
	}
	return b.String()
}
