package config

import "github.com/sluice-platform/sluice/libs/didyoumean"

// path and env are what a misspelt name is compared with.
func (k Key) path() string { return k.Path }
func (k Key) env() string  { return k.Env }

// suggestion asks for the known key that a misspelt one is near to, and is
// empty where none is.
func suggestion(name string, keys []Key, of func(Key) string) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = of(k)
	}
	near := didyoumean.Nearest(name, names)
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}
