package service

import (
	"context"
	"fmt"
	"net/http"
	"slices"
)

// Runner is the life of a room. Run blocks until ctx is cancelled and then
// returns nil after a clean stop; it is called once.
type Runner interface {
	Run(ctx context.Context) error
}

// Readier is optional on a Runner. Ready returns nil when the room can do its
// work, else an error that says why not; it is called often, from any
// goroutine, also before and after Run, and must not block.
type Readier interface {
	Ready() error
}

// Degrader is optional on a Runner. Degraded says what the room does less well
// than it should although it is ready, empty where nothing is wrong; it is shown
// in /readyz. It is called often, from any goroutine, and must not block.
type Degrader interface {
	Degraded() string
}

// AdminHandler is optional on a Runner. AdminRoutes registers routes that the
// admin port mounts below /debug/<module>/; patterns are relative to that
// ("GET /tables/{topic}").
type AdminHandler interface {
	AdminRoutes(mux *http.ServeMux)
}

// RootAdminHandler is optional on a Runner beside AdminHandler: patterns of its
// AdminRoutes that people know without knowing the module, such as
// "POST /v1/explain", and that the admin port serves at its root as well. Of
// several modules with one pattern the first has it.
type RootAdminHandler interface {
	RootAdminRoutes() []string
}

// Module is one row of the table a process is made of.
type Module struct {
	// Name is unique in the process; it is in logs, errors and /readyz.
	Name string
	// Needs names the modules that start before this one and stop after it.
	Needs []string
	// New constructs the Runner and starts nothing.
	New func() (Runner, error)
}

// order sorts the modules so that each comes after what it needs, and
// otherwise keeps their given order. Unknown needs, duplicates and circles are
// errors.
func order(modules []Module) ([]Module, error) {
	byName := make(map[string]Module, len(modules))
	for _, m := range modules {
		if _, twice := byName[m.Name]; twice {
			return nil, fmt.Errorf("module %s is there twice", m.Name)
		}
		byName[m.Name] = m
	}
	sorted := make([]Module, 0, len(modules))
	done := make(map[string]bool, len(modules))
	var visit func(m Module, path []string) error
	visit = func(m Module, path []string) error {
		if done[m.Name] {
			return nil
		}
		if slices.Contains(path, m.Name) {
			return fmt.Errorf("modules need each other in a circle: %v", append(path, m.Name))
		}
		for _, need := range m.Needs {
			needed, known := byName[need]
			if !known {
				return fmt.Errorf("module %s needs %s, which is not among the modules", m.Name, need)
			}
			if err := visit(needed, append(path, m.Name)); err != nil {
				return err
			}
		}
		done[m.Name] = true
		sorted = append(sorted, m)
		return nil
	}
	for _, m := range modules {
		if err := visit(m, nil); err != nil {
			return nil, err
		}
	}
	return sorted, nil
}
