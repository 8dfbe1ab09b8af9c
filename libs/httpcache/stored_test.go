package httpcache

import (
	"net/http"
	"reflect"
	"testing"
	"time"
)

// What is kept is what was stored; what is not ours is refused, not misread.
func TestStoredCodec(t *testing.T) {
	t.Parallel()
	s := &storedResponse{
		status: 200, header: http.Header{"Etag": {`"a"`}}, body: []byte("body\x00\xff"),
		resource: resource{host: "h", path: "/p", query: "q", filtered: true}, vary: []string{"A"}, varyValues: []string{",1"},
		tags: []string{"t"}, since: Position{1, 2}, incarnation: "i", age: time.Second,
	}
	b, err := storedCodec{}.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	back, err := storedCodec{}.Decode(b)
	if err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("read back %+v, %v", back, err)
	}
	for n := range len(b) - len(s.body) {
		if _, err := (storedCodec{}).Decode(b[:n]); err == nil {
			t.Errorf("the first %d bytes are read as a response", n)
		}
	}
}

// Purges are ordered by generation first: versions of a database that was restored
// from a backup may be lower.
func TestOrderOfPurges(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		a, b   Position
		before bool
	}{
		{Position{}, Position{0, 1}, true}, {Position{1, 5}, Position{1, 5}, false}, {Position{1, 5}, Position{2, 3}, true},
		{Position{2, 3}, Position{1, 5}, false},
	} {
		if c.a.before(c.b) != c.before {
			t.Errorf("case %d", i)
		}
	}
}
