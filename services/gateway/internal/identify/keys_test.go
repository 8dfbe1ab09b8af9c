package identify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sluice-platform/sluice/libs/stream"
	"github.com/sluice-platform/sluice/schemas/events/keys"
)

func mustKey(t *testing.T, id, secret string) *Key {
	t.Helper()
	hash := sha256.Sum256([]byte(secret))
	value, err := json.Marshal(keys.Key{ID: id, TenantID: "acme", SHA256: hex.EncodeToString(hash[:]), Status: keys.StatusActive})
	if err != nil {
		t.Fatal(err)
	}
	k, err := DecodeKey(id, value)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// After any history of changes the table finds what a plain map would.
func TestKeyTableAgreesWithAMap(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	table := NewKeys()
	secretOf := map[string]string{} // by id
	for step := range 5000 {
		id := fmt.Sprintf("k%d", random.IntN(200))
		switch random.IntN(10) {
		case 0, 1, 2:
			table.Apply(stream.Change[*Key]{Key: id, Deleted: true})
			delete(secretOf, id)
		case 3:
			if step%50 == 0 { // a rebuilt copy is swapped in
				entries := map[string]stream.Entry[*Key]{}
				for id, secret := range secretOf {
					entries[id] = stream.Entry[*Key]{Value: mustKey(t, id, secret)}
				}
				table.Replace(entries)
			}
		default:
			secret := fmt.Sprintf("slk_%s_%d", id, random.IntN(3)) // keys are rotated, too
			table.Apply(stream.Change[*Key]{Key: id, Entry: stream.Entry[*Key]{Value: mustKey(t, id, secret)}})
			secretOf[id] = secret
		}
		id = fmt.Sprintf("k%d", random.IntN(200))
		for n := range 3 {
			secret := fmt.Sprintf("slk_%s_%d", id, n)
			found := table.Find(secret)
			if want := secretOf[id] == secret; (found != nil) != want {
				t.Fatalf("step %d: key %s is found: %v, want %v", step, secret, found != nil, want)
			} else if want && found.ID != id {
				t.Fatalf("step %d: key %s is found as %s", step, secret, found.ID)
			}
		}
	}
}

func TestKeyWhoseHashAnotherIDTookOverStays(t *testing.T) {
	t.Parallel()
	table := NewKeys()
	for _, id := range []string{"old", "new"} {
		table.Apply(stream.Change[*Key]{Key: id, Entry: stream.Entry[*Key]{Value: mustKey(t, id, "slk_same")}})
	}
	table.Apply(stream.Change[*Key]{Key: "old", Deleted: true})
	if k := table.Find("slk_same"); k == nil || k.ID != "new" {
		t.Fatalf("found %+v, want the new id", k)
	}
	table.Apply(stream.Change[*Key]{Key: "unheard", Deleted: true})
}

func TestDecodeKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{`, `{"tenantId":"acme","sha256":"abc"}`, `{"tenantId":"acme"}`,
		`{"sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`,
		`{"tenantId":"acme","sha256":"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"}`,
	} {
		if k, err := DecodeKey("k", []byte(text)); err == nil {
			t.Errorf("%s is taken as %+v", text, k)
		}
	}
}
