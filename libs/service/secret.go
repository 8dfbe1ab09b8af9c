package service

import (
	"fmt"
	"io"
	"log/slog"
)

// mask stands for a secret wherever it might be seen.
const mask = "***"

// Secret is a string that nothing prints: fmt, slog, JSON, YAML and text
// encodings give *** in its place (and nothing for an empty one, so that "not
// set" can be seen). Only Reveal gives the value.
type Secret string

// Reveal returns the value, to be handed to the client that needs it and to
// nothing else.
func (s Secret) Reveal() string { return string(s) }

// String returns the mask.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// GoString returns the mask in quotes, for %#v.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format writes the mask whatever the verb: %x or %d of a string would reveal it.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || (verb == 'v' && f.Flag('#')) {
		text = `"` + text + `"`
	}
	// fmt.State reports its own write errors to the caller of Fprintf.
	_, _ = io.WriteString(f, text)
}

// LogValue gives slog the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText gives text encoders, YAML among them, the mask.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON gives the mask as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }
