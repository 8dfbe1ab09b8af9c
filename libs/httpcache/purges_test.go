package httpcache

import "testing"

// A purge that is deleted leaves nothing behind.
func TestDeletedPurges(t *testing.T) {
	t.Parallel()
	x := NewPurges()
	for i, p := range []Purge{{URL: "/a?b"}, {Prefix: "/a"}, {Tag: "t"}, {All: true}} {
		p.Family = "f"
		x.Put("id", Record{p, Position{Version: int64(i + 1)}})
		x.Delete("id")
	}
	f := x.families["f"]
	if len(f.urls)+len(f.prefixes)+len(f.tags)+len(x.records) != 0 || f.all != (Position{}) {
		t.Errorf("left: %+v", f)
	}
	if !x.valid("f", &storedResponse{resource: resource{path: "/a"}}) {
		t.Error("a deleted purge still makes responses void")
	}
}
