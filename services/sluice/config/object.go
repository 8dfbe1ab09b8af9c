package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// object is one element of a list of objects while it is filled.
type object struct {
	keys   []Key
	byPath map[string]Key
	out    reflect.Value
	given  map[string]bool
}

// convertStruct takes one element of a list of objects. Sections in it are
// objects in turn, or dotted names, as in the file itself. Unknown fields are
// refused.
func convertStruct(t reflect.Type, in any) (reflect.Value, error) {
	fields, ok := in.(map[string]any)
	if !ok {
		return reflect.Value{}, errors.New("not an object: give {field: value, …}")
	}
	keys, err := Keys(t)
	if err != nil {
		return reflect.Value{}, err
	}
	o := object{keys: keys, byPath: make(map[string]Key, len(keys)), out: reflect.New(t).Elem(), given: map[string]bool{}}
	for _, k := range keys {
		o.byPath[k.Path] = k
	}
	return o.out, o.fill("", fields)
}

// fill sets the fields of one section, whose path ends in a dot unless it is
// the element itself. Names are taken in order, so that of several mistakes
// always the same one is told.
func (o *object) fill(section string, fields map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		path := section + name
		var err error
		if key, known := o.byPath[path]; known {
			err = o.set(key, fields[name])
		} else if o.isSection(path) {
			err = o.below(path, fields[name])
		} else {
			err = fmt.Errorf("unknown field %s%s", path, suggestion(path, o.keys, Key.path))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *object) isSection(path string) bool {
	return slices.ContainsFunc(o.keys, func(k Key) bool { return strings.HasPrefix(k.Path, path+".") })
}

func (o *object) below(path string, value any) error {
	if value == nil {
		return nil // a section whose lines are all commented out
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: not an object: give {field: value, …}", path)
	}
	return o.fill(path+".", fields)
}

func (o *object) set(key Key, value any) error {
	switch {
	case o.given[key.Path]:
		return fmt.Errorf("%s: given twice", key.Path)
	case value == nil:
		return fmt.Errorf("%s: no value; leave it out for its default", key.Path)
	}
	v, err := convert(key.Type, value)
	if err != nil {
		return fmt.Errorf("%s: %w", key.Path, err)
	}
	o.given[key.Path] = true
	o.out.FieldByIndex(key.index).Set(v)
	return nil
}
