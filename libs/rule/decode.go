package rule

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Decode reads a record of rules.v1 and compiles it. Nothing of data is kept.
// Fields that this build does not know are left out.
func Decode(data []byte) (*Compiled, error) {
	s, _ := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if scanRule(string(data), s) {
		return Compile(s.rule)
	}
	var r rules.Rule
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read rule: %w", err)
	}
	return Compile(r)
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// DecodeOverride reads a record of overrides.v1 and compiles it.
func DecodeOverride(data []byte) (*CompiledOverride, error) {
	var o overrides.Override
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("read override: %w", err)
	}
	return CompileOverride(o)
}
