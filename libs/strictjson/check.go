package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/didyoumean"
)

// maxFound bounds the answer to a document that is wrong all over.
const maxFound = 50

var timeType = reflect.TypeFor[time.Time]()

// checker compares a parsed document with a Go type and collects mistakes.
type checker struct {
	found []FieldError
	// unread are the fields whose values are given and not known: they could
	// not be read, or stand under a misspelt name.
	unread []unread
}

// unread is a field; text is one whose value may be the name of an algorithm or
// the like, which decides what the fields beside it are for.
type unread struct {
	path string
	text bool
}

func (c *checker) add(path, format string, args ...any) {
	if len(c.found) < maxFound {
		c.found = append(c.found, FieldError{Field: path, Message: fmt.Sprintf(format, args...)})
		c.unread = append(c.unread, unread{path: path})
	}
}

// addUnknown adds a member that is no field of the object at path.
func (c *checker) addUnknown(path, name string, fields map[string]reflect.Type, names []string) {
	if len(c.found) >= maxFound {
		return
	}
	there := "there are"
	if near := didyoumean.Nearest(name, names); near != "" {
		there = "did you mean " + near + "? There are"
		c.unread = append(c.unread, unread{join(path, near), fields[near].Kind() == reflect.String})
	}
	c.found = append(c.found, FieldError{join(path, name), fmt.Sprintf("is not a field here; %s %s", there, strings.Join(names, ", "))})
}

func (c *checker) check(n node, t reflect.Type, path string) {
	isNull := n.kind == scalarKind && n.scalar == nil
	if t == timeType {
		c.checkTime(n, path)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		if !isNull {
			c.check(n, t.Elem(), path)
		}
	case reflect.Struct:
		c.checkStruct(n, t, path)
	case reflect.Slice:
		if !isNull { // null is how Go writes an absent list
			c.checkSlice(n, t, path)
		}
	case reflect.String:
		before := len(c.unread)
		c.checkString(n, path)
		for i := range c.unread[before:] {
			c.unread[before+i].text = true
		}
	case reflect.Bool:
		if _, ok := n.scalar.(bool); !ok {
			c.add(path, "must be true or false, not %s", n.describe())
		}
	case reflect.Int, reflect.Int64, reflect.Int32:
		c.checkInteger(n, t, path)
	default:
		c.add(path, "is of a type (%s) that cannot be decoded", t)
	}
}

func (c *checker) checkStruct(n node, t reflect.Type, path string) {
	if n.kind != objectKind {
		c.add(path, "must be an object, not %s", n.describe())
		return
	}
	fields, names := fieldsOf(t)
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		at := join(path, m.name)
		fieldType, known := fields[m.name]
		switch {
		case seen[m.name]:
			c.add(at, "appears twice")
		case !known:
			c.addUnknown(path, m.name, fields, names)
		default:
			c.check(m.value, fieldType, at)
		}
		seen[m.name] = true
	}
}

// Names returns the fields that Decode knows of a struct type, in its order.
func Names[T any]() []string {
	_, names := fieldsOf(reflect.TypeFor[T]())
	return names
}

func fieldsOf(t reflect.Type) (map[string]reflect.Type, []string) {
	fields := make(map[string]reflect.Type, t.NumField())
	names := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields[name] = t.Field(i).Type
		names = append(names, name)
	}
	return fields, names
}

func (c *checker) checkSlice(n node, t reflect.Type, path string) {
	if n.kind != arrayKind {
		c.add(path, "must be an array, not %s", n.describe())
		return
	}
	for i, item := range n.items {
		c.check(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (c *checker) checkString(n node, path string) {
	s, ok := n.scalar.(string)
	switch {
	case !ok:
		c.add(path, "must be a string, not %s", n.describe())
	case strings.ContainsRune(s, 0):
		c.add(path, "must not hold a NUL character (\\u0000)")
	case n.halfPair:
		c.add(path, "must not hold half of a surrogate pair: write both, as in \\ud83d\\ude00, or the character itself")
	}
}

func (c *checker) checkInteger(n node, t reflect.Type, path string) {
	number, ok := n.scalar.(json.Number)
	if !ok {
		c.add(path, "must be a whole number, not %s", n.describe())
		return
	}
	if _, err := strconv.ParseInt(number.String(), 10, t.Bits()); err != nil {
		c.add(path, "must be a whole number written without fraction or exponent, and fit in %d bits; %.40s does not", t.Bits(), number)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
