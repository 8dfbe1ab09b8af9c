package gateway

import (
	"net/http"
	"reflect"
	"testing"
	"time"
)

// What is kept is what was stored; what is not ours is refused, not misread.
func TestStoredCodec(t *testing.T) {
	t.Parallel()
	s := &storedAnswer{
		status: 200, header: http.Header{"Etag": {`"a"`}}, body: []byte("body\x00\xff"),
		resource: resource{host: "h", path: "/p", query: "q", filtered: true}, vary: []string{"A"}, varyValues: []string{",1"},
		tags: []string{"t"}, since: purgePoint{1, 2}, incarnation: "i", age: time.Second,
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
			t.Errorf("the first %d bytes are read as an answer", n)
		}
	}
}

// Purges are ordered by generation first: versions of a database that was restored
// from a backup may be lower.
func TestOrderOfPurges(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		a, b   purgePoint
		before bool
	}{
		{purgePoint{}, purgePoint{0, 1}, true}, {purgePoint{1, 5}, purgePoint{1, 5}, false}, {purgePoint{1, 5}, purgePoint{2, 3}, true},
		{purgePoint{2, 3}, purgePoint{1, 5}, false},
	} {
		if c.a.before(c.b) != c.before {
			t.Errorf("case %d", i)
		}
	}
}
