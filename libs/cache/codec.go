package cache

import "encoding/json"

// Codec turns values into what Redis keeps and back. It must be safe for concurrent use. A payload that Decode refuses
// (another version's) is as good as absent: the value is loaded again.
type Codec[V any] interface {
	Encode(V) ([]byte, error)
	Decode([]byte) (V, error)
}

// JSON is the default Codec.
type JSON[V any] struct{}

// Encode is json.Marshal.
func (JSON[V]) Encode(v V) ([]byte, error) { return json.Marshal(v) }

// Decode is json.Unmarshal.
func (JSON[V]) Decode(b []byte) (V, error) {
	var v V
	err := json.Unmarshal(b, &v)
	return v, err
}

// Bytes stores []byte as it is. Callers must not write to what they get: it is shared.
type Bytes struct{}

// Encode returns v.
func (Bytes) Encode(v []byte) ([]byte, error) { return v, nil }

// Decode returns b.
func (Bytes) Decode(b []byte) ([]byte, error) { return b, nil }
