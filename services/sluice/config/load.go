package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
)

// OtherEnv are variables of ours that are no configuration keys; one that ends
// in _ is a prefix.
var OtherEnv = map[string]string{
	"SLUICE_CONFIG":    "the YAML file, as --config",
	"SLUICE_URL":       "the control plane that client commands talk to",
	"SLUICE_ADMIN_URL": "the gateway's admin port that sluice explain asks",
	"SLUICE_GATEWAY":   "the gateway that sluice cache warm asks",
	"SLUICE_TOKEN":     "the bearer token of client commands",
	"SLUICE_CACHE_DIR": "where development servers are downloaded to",
	"SLUICE_TEST_":     "servers given to the tests",
}

// Options are the sources of a configuration, in ascending order of weight.
type Options struct {
	// Mode is a mode's own layer over the defaults (sluice dev): path → value.
	Mode map[string]any
	// File is a YAML file; empty means none.
	File string
	// Environ is NAME=value, as of os.Environ.
	Environ []string
	// Flags are named flags that stand for a key: path → value.
	Flags map[string]string
	// Sets are key=value, as of --set; the last of several counts.
	Sets []string
}

// Loaded is a configuration in force and where each value came from.
type Loaded struct {
	Config Config
	// Sources has an entry for each key that is not at its default: "file x.yaml",
	// "environment SLUICE_…", "--set".
	Sources map[string]string
	keys    []Key
}

// sourceMode is the source of values that a mode brings.
const sourceMode = "this mode"

// loading is the state of one Load.
type loading struct {
	out    *Loaded
	target reflect.Value
	byPath map[string]Key
	errs   []error
}

// Load merges the layers over the defaults and checks the result. The error
// joins everything that is wrong, each with its key and source.
func Load(o Options) (*Loaded, error) {
	keys, err := Keys(reflect.TypeFor[Config]())
	if err != nil {
		return nil, err
	}
	l := &loading{
		out:    &Loaded{Config: Default(), Sources: map[string]string{}, keys: keys},
		byPath: make(map[string]Key, len(keys)),
	}
	l.target = reflect.ValueOf(&l.out.Config).Elem()
	for _, k := range keys {
		l.byPath[k.Path] = k
	}
	for _, path := range slices.Sorted(maps.Keys(o.Mode)) {
		l.set(path, o.Mode[path], sourceMode)
	}
	if err := l.file(o.File); err != nil {
		return nil, err
	}
	if err := l.environ(o.Environ); err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(o.Flags)) {
		l.set(path, o.Flags[path], "flag")
	}
	l.sets(o.Sets)
	if len(l.errs) == 0 {
		l.errs = l.out.Config.check()
	}
	if len(l.errs) > 0 {
		return nil, fmt.Errorf("configuration:\n%w", errors.Join(l.errs...))
	}
	return l.out, nil
}

// set stores one value, or the error that names its key and source.
func (l *loading) set(path string, value any, source string) {
	key, known := l.byPath[path]
	if !known {
		l.unknown(path, source)
		return
	}
	if value == nil {
		l.errs = append(l.errs, fmt.Errorf("%s (%s): no value; leave the key out for its default", path, source))
		return
	}
	v, err := convert(key.Type, value)
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("%s (%s): %w", path, source, err))
		return
	}
	l.target.FieldByIndex(key.index).Set(v)
	l.out.Sources[path] = source
}

func (l *loading) unknown(path, source string) {
	for _, k := range l.out.keys {
		if strings.HasPrefix(k.Path, path+".") {
			l.errs = append(l.errs, fmt.Errorf("%s (%s): this is a section; give one of its keys, such as %s", path, source, k.Path))
			return
		}
	}
	l.errs = append(l.errs, fmt.Errorf("%s (%s): unknown key%s", path, source, suggestion(path, l.out.keys, Key.path)))
}

func (l *loading) file(name string) error {
	if name == "" {
		return nil
	}
	given, err := readFile(name)
	if err != nil {
		return fmt.Errorf("configuration file %s: %w", name, err)
	}
	k := koanf.New(".")
	if err := k.Load(given, nil); err != nil {
		return fmt.Errorf("configuration file %s: %w", name, err)
	}
	all := k.All()
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if l.emptySection(path, all[path]) {
			continue
		}
		l.set(path, all[path], "file "+name)
	}
	return nil
}

// emptySection says that a section is there without a key, as a file has it
// whose lines are all commented out.
func (l *loading) emptySection(path string, value any) bool {
	m, isMap := value.(map[string]any)
	if value != nil && !(isMap && len(m) == 0) {
		return false
	}
	return slices.ContainsFunc(l.out.keys, func(k Key) bool { return strings.HasPrefix(k.Path, path+".") })
}

func (l *loading) environ(environ []string) error {
	byEnv := make(map[string]Key, len(l.out.keys))
	for _, k := range l.out.keys {
		byEnv[k.Env] = k
	}
	k := koanf.New("\x00") // variables are flat: no delimiter may split their names
	err := k.Load(env.Provider("\x00", env.Opt{
		Prefix: EnvPrefix, EnvironFunc: func() []string { return environ },
	}), nil)
	if err != nil {
		return fmt.Errorf("read the environment: %w", err)
	}
	all := k.All()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if otherEnv(name) {
			continue
		}
		key, known := byEnv[name]
		if !known {
			l.errs = append(l.errs, fmt.Errorf("%s: unknown environment variable%s", name, suggestion(name, l.out.keys, Key.env)))
			continue
		}
		l.set(key.Path, all[name], "environment "+name)
	}
	return nil
}

func otherEnv(name string) bool {
	for known := range OtherEnv {
		if name == known || (strings.HasSuffix(known, "_") && strings.HasPrefix(name, known)) {
			return true
		}
	}
	return false
}

func (l *loading) sets(sets []string) {
	for _, s := range sets {
		path, value, ok := strings.Cut(s, "=")
		if !ok {
			l.errs = append(l.errs, fmt.Errorf("--set %s: give key=value", path))
			continue
		}
		l.set(strings.TrimSpace(path), value, "--set")
	}
}

// Given says that a user set the key, by whatever source: it is neither at its
// default nor at a mode's own value.
func (l *Loaded) Given(path string) bool {
	source, set := l.Sources[path]
	return set && source != sourceMode
}
