package reserve

import (
	"context"
	"errors"
	"testing"

	"github.com/sluice-platform/sluice/libs/limit"
)

// Nobody but whoever made it looks at a reservation or ends it, of the same tenant
// neither; the operator does.
func TestOnlyWhoeverMadeItEndsIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := b.quota(1000)
	owner := Caller{Tenant: acme, User: "u1", Application: "a1", APIKey: "k1"}
	others := map[string]Caller{
		"another tenant":      {Tenant: "globex", User: "u1", Application: "a1", APIKey: "k1"},
		"another user":        {Tenant: acme, User: "u2", Application: "a1", APIKey: "k1"},
		"another application": {Tenant: acme, User: "u1", Application: "a2", APIKey: "k1"},
		"another key":         {Tenant: acme, User: "u1", Application: "a1", APIKey: "k2"},
		"no key":              {Tenant: acme, User: "u1", Application: "a1"},
		"the tenant alone":    {Tenant: acme, APIKey: "k1"},
	}
	create := func(id, point string) {
		t.Helper()
		r, counters := wish{id: id, cost: 10, counters: []limit.Counter{q}}.record()
		r.User, r.Application, r.APIKey = "u1", "a1", "k1"
		b.dieAt(0, point)
		defer b.revive(0)
		if _, err := b.books[0].Reserve(t.Context(), r, patient, counters, func(Made) {}); err != nil && !errors.Is(err, errDied) {
			t.Fatal(err)
		}
	}
	refused := func(id, state string) {
		t.Helper()
		for what, c := range others {
			_, err := b.books[1].Get(t.Context(), c, id)
			for did, err := range map[string]error{
				"looks": err, "commits": second(b.books[1].Commit(t.Context(), c, id, 3)), "releases": second(b.books[1].Release(t.Context(), c, id)),
			} {
				if !errors.Is(err, ErrUnknown) {
					t.Errorf("%s, %s %s: %v", state, what, did, err)
				}
			}
		}
	}
	for id, end := range map[string]func(Caller, string) error{
		"committed": func(c Caller, id string) error { return second(b.books[1].Commit(context.Background(), c, id, 3)) },
		"released":  func(c Caller, id string) error { return second(b.books[1].Release(context.Background(), c, id)) },
	} {
		create(id, "")
		refused(id, "open")
		for range 2 {
			if err := end(owner, id); err != nil {
				t.Errorf("%s by its owner: %v", id, err)
			}
			refused(id, id)
		}
	}
	b.check("its owner's doing", []limit.Counter{q}, 3)
	create("stuck", "")
	operator := Caller{Tenant: acme, Operator: true}
	if r, err := b.books[1].Get(t.Context(), operator, "stuck"); err != nil || r.User != "u1" {
		t.Errorf("the operator looks: %+v, %v", r, err)
	}
	if _, _, err := b.books[1].Release(t.Context(), operator, "stuck"); err != nil {
		t.Errorf("the operator releases: %v", err)
	}
	create("not charged", pointIntent)
	refused("not charged", "not charged")
	if r, _, err := b.books[1].Release(t.Context(), owner, "not charged"); err != nil || r.State != Void {
		t.Errorf("what is not charged, by its owner: %+v, %v", r, err)
	}
	b.check("all that", []limit.Counter{q}, 3)
}

// Where no rule counts by the key, a new one ends what an old one began.
func TestANewKeyEndsWhatAnOldOneBegan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustReserve(wish{id: "a", cost: 10, counters: []limit.Counter{b.quota(100)}})
	if _, _, err := b.books[0].Commit(t.Context(), Caller{Tenant: acme, APIKey: "new"}, "a", 3); err != nil {
		t.Fatal(err)
	}
}
