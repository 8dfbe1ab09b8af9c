package httpcache

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// storedResponse is a response as it is stored. It is shared by goroutines, and only
// checked and void change.
type storedResponse struct {
	status int
	header http.Header // without hop-by-hop fields
	body   []byte

	resource resource
	// vary are the request headers that it depends on, varyValues their values.
	vary, varyValues []string
	tags             []string
	// since is the newest position that was known when its load began.
	since Position
	// incarnation stays the same through refreshes, and ends when it is cleared.
	incarnation string
	// age is how old it was when it was received.
	age time.Duration
	// validateEach: the origin must confirm it for each request.
	validateEach bool

	// checked is the number of the last state of the purges in which it was found
	// valid, plus one; void is for good.
	checked atomic.Uint64
	void    atomic.Bool
}

// weight is about the memory that it takes, in bytes.
func (s *storedResponse) weight() uint32 {
	n := len(s.body) + 512
	for name, values := range s.header {
		n += len(name) + 32
		for _, v := range values {
			n += len(v) + 16
		}
	}
	return uint32(min(n, 1<<31)) //nolint:gosec // bounded
}

// storedHead is what Redis keeps beside the body.
type storedHead struct {
	Status      int         `json:"s"`
	Header      http.Header `json:"h"`
	Host        string      `json:"o"`
	Path        string      `json:"p"`
	Query       string      `json:"q,omitempty"`
	Filtered    bool        `json:"f,omitempty"`
	Vary        []string    `json:"v,omitempty"`
	VaryValues  []string    `json:"w,omitempty"`
	Tags        []string    `json:"t,omitempty"`
	Since       Position    `json:"u"`
	Incarnation string      `json:"i"`
	Age         int64       `json:"a,omitempty"` // ns
	Each        bool        `json:"e,omitempty"`
}

// Field values are bytes (RFC 9110, section 5.5) and JSON strings are text: a value
// is stored as the text whose ISO 8859-1 encoding it is.
func asText(h http.Header) http.Header  { return eachValue(h, textsOf) }
func asBytes(h http.Header) http.Header { return eachValue(h, bytesOf) }

func eachValue(h http.Header, change func([]string) []string) http.Header {
	if h == nil {
		return nil
	}
	out := make(http.Header, len(h))
	for name, values := range h {
		out[name] = change(values)
	}
	return out
}

func textsOf(values []string) []string {
	return eachUnlessPlain(values, func(v string) string {
		runes := make([]rune, len(v))
		for i := range len(v) {
			runes[i] = rune(v[i])
		}
		return string(runes)
	})
}

func bytesOf(values []string) []string {
	return eachUnlessPlain(values, func(v string) string {
		b := make([]byte, 0, len(v))
		for _, r := range v {
			b = append(b, byte(r)) //nolint:gosec // textsOf wrote no other
		}
		return string(b)
	})
}

// eachUnlessPlain returns values as they are if all are ASCII, as nearly all are.
func eachUnlessPlain(values []string, change func(string) string) []string {
	if !slices.ContainsFunc(values, notASCII) {
		return values
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = change(v)
	}
	return out
}

func notASCII(v string) bool {
	return strings.IndexFunc(v, func(r rune) bool { return r >= 0x80 }) >= 0
}

// storedCodec is the cache.Codec of responses: the head's length, the head, the
// body. It is safe for concurrent use.
type storedCodec struct{}

// Encode implements cache.Codec.
func (storedCodec) Encode(s *storedResponse) ([]byte, error) {
	head, err := json.Marshal(storedHead{
		Status: s.status, Header: asText(s.header), Host: s.resource.host, Path: s.resource.path, Query: s.resource.query,
		Filtered: s.resource.filtered, Vary: s.vary, VaryValues: textsOf(s.varyValues), Tags: s.tags, Since: s.since,
		Incarnation: s.incarnation, Age: int64(s.age), Each: s.validateEach,
	})
	if err != nil {
		return nil, err
	}
	b := make([]byte, 4, 4+len(head)+len(s.body))
	binary.BigEndian.PutUint32(b, uint32(len(head))) //nolint:gosec // headers are bounded by the transport
	return append(append(b, head...), s.body...), nil
}

var errMalformed = errors.New("malformed stored response")

// Decode implements cache.Codec.
func (storedCodec) Decode(b []byte) (*storedResponse, error) {
	if len(b) < 4 {
		return nil, errMalformed
	}
	n := int(binary.BigEndian.Uint32(b))
	if n > len(b)-4 {
		return nil, errMalformed
	}
	var h storedHead
	if err := json.Unmarshal(b[4:4+n], &h); err != nil {
		return nil, err
	}
	if len(h.Vary) != len(h.VaryValues) || h.Status < 200 {
		return nil, errMalformed
	}
	return &storedResponse{
		status: h.Status, header: asBytes(h.Header), body: b[4+n:],
		resource: resource{host: h.Host, path: h.Path, query: h.Query, filtered: h.Filtered},
		vary:     h.Vary, varyValues: bytesOf(h.VaryValues), tags: h.Tags, since: h.Since, incarnation: h.Incarnation,
		age: time.Duration(h.Age), validateEach: h.Each,
	}, nil
}
