package ticket

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)

func key(id string, fill byte) Key { return Key{ID: id, Secret: bytes.Repeat([]byte{fill}, 32)} }

func mustKeys(t testing.TB, keys ...Key) *Keys {
	t.Helper()
	k, err := NewKeys(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustSign(t testing.TB, k *Keys, ticket Ticket) string {
	t.Helper()
	text, err := k.Sign(ticket)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func portal() Ticket {
	return Ticket{Purpose: "portal", Subject: "acme", Expiry: noon.Add(time.Hour)}
}

func TestWhatWasSignedIsWhatIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k, err := NewKeys(key(rapid.StringMatching(`[A-Za-z0-9._-]{1,64}`).Draw(t, "id"), 1))
		if err != nil {
			t.Fatal(err)
		}
		from := noon.Add(-time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "from")) * time.Millisecond)
		in := Ticket{
			Purpose:   rapid.StringOfN(rapid.Rune(), 1, 16, 64).Draw(t, "purpose"),
			Subject:   rapid.StringOfN(rapid.Rune(), 1, 200, 1024).Draw(t, "subject"),
			NotBefore: from,
			Expiry:    noon.Add(time.Duration(rapid.Int64Range(1, 1e6).Draw(t, "to")) * time.Millisecond),
		}
		text, err := k.Sign(in)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > MaxLength {
			t.Fatalf("%d characters, over MaxLength", len(text))
		}
		out, err := k.Verify(text, Check{Purpose: in.Purpose, Now: noon})
		if err != nil {
			t.Fatal(err)
		}
		if out.Subject != in.Subject || out.Purpose != in.Purpose || !out.NotBefore.Equal(in.NotBefore) || !out.Expiry.Equal(in.Expiry) {
			t.Fatalf("read %+v, signed %+v", out, in)
		}
	})
}

func TestEveryReason(t *testing.T) {
	t.Parallel()
	k := mustKeys(t, key("k2", 2), key("k1", 1))
	later := portal()
	later.NotBefore = noon.Add(time.Minute)
	for _, c := range []struct {
		name string
		text string
		now  time.Time
		want error
	}{
		{"good", mustSign(t, k, portal()), noon, nil},
		{"of the older key", mustSign(t, mustKeys(t, key("k1", 1)), portal()), noon, nil},
		{"the last instant", mustSign(t, k, portal()), noon.Add(time.Hour - time.Millisecond), nil},
		{"its end", mustSign(t, k, portal()), noon.Add(time.Hour), ErrExpired},
		{"before its time", mustSign(t, k, later), noon, ErrNotYet},
		{"its first instant", mustSign(t, k, later), noon.Add(time.Minute), nil},
		{"another purpose", mustSign(t, k, Ticket{Purpose: "waitingroom", Subject: "acme", Expiry: noon.Add(time.Hour)}), noon, ErrPurpose},
		{"a retired key", mustSign(t, mustKeys(t, key("k0", 0)), portal()), noon, ErrUnknownKey},
		{"a key of the same name", mustSign(t, mustKeys(t, key("k1", 9)), portal()), noon, ErrForged},
		{"empty", "", noon, ErrMalformed},
		{"no base64", "%%%", noon, ErrMalformed},
		{"endless", strings.Repeat("A", MaxLength+4), noon, ErrMalformed},
		{"a line end inside", mustSign(t, k, portal())[:9] + "\n" + mustSign(t, k, portal())[9:], noon, ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := k.Verify(c.text, Check{Purpose: "portal", Now: c.now}); !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestLeewayForgivesAClockEitherWay(t *testing.T) {
	t.Parallel()
	k := mustKeys(t, key("k", 1))
	in := portal()
	in.NotBefore = noon
	text := mustSign(t, k, in)
	for _, now := range []time.Time{noon.Add(-5 * time.Second), in.Expiry.Add(5*time.Second - time.Millisecond)} {
		if _, err := k.Verify(text, Check{Purpose: "portal", Now: now, Leeway: 5 * time.Second}); err != nil {
			t.Errorf("at %s: %v", now, err)
		}
		if _, err := k.Verify(text, Check{Purpose: "portal", Now: now}); err == nil {
			t.Errorf("at %s it holds without leeway", now)
		}
	}
}

// Whatever bit is turned, and wherever the ticket is cut, it is refused.
// A ticket that ends further ahead than one of its purpose may is refused,
// however well it is signed.
func TestATicketThatEndsTooFarAhead(t *testing.T) {
	t.Parallel()
	k := mustKeys(t, key("k1", 1))
	c := Check{Purpose: Portal, Now: noon, Leeway: 5 * time.Second, Life: PortalLife}
	for life, want := range map[time.Duration]error{
		time.Hour: nil, PortalLife: nil, PortalLife + 5*time.Second: nil, PortalLife + 6*time.Second: ErrTooLong, 10 * 365 * 24 * time.Hour: ErrTooLong,
	} {
		text := mustSign(t, k, Ticket{Purpose: Portal, Subject: "acme", Expiry: noon.Add(life)})
		if _, err := k.Verify(text, c); !errors.Is(err, want) {
			t.Errorf("with %s to go: %v, want %v", life, err, want)
		}
	}
}

func TestNoBitCanBeTurned(t *testing.T) {
	t.Parallel()
	k := mustKeys(t, key("k", 1))
	raw, err := base64.RawURLEncoding.DecodeString(mustSign(t, k, portal()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(raw) * 8 {
		bent := append([]byte(nil), raw...)
		bent[i/8] ^= 1 << (i % 8)
		if _, err := k.Verify(base64.RawURLEncoding.EncodeToString(bent), Check{Purpose: "portal", Now: noon}); err == nil {
			t.Fatalf("bit %d of byte %d may be turned", i%8, i/8)
		}
	}
	for n := range raw {
		if _, err := k.Verify(base64.RawURLEncoding.EncodeToString(raw[:n]), Check{Purpose: "portal", Now: noon}); err == nil {
			t.Fatalf("the first %d bytes are a ticket", n)
		}
	}
}

// The last character of a ticket may hold bits that belong to no byte.
func TestOneTicketHasOneText(t *testing.T) {
	t.Parallel()
	k := mustKeys(t, key("k", 1))
	for _, subject := range []string{"a", "ab", "abc"} {
		in := portal()
		in.Subject = subject
		text := mustSign(t, k, in)
		for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
			other := text[:len(text)-1] + string(c)
			if _, err := k.Verify(other, Check{Purpose: "portal", Now: noon}); err == nil && other != text {
				t.Fatalf("%q and %q are one ticket", text, other)
			}
		}
	}
}

func TestSignRefuses(t *testing.T) {
	t.Parallel()
	k := mustKeys(t, key("k", 1))
	for name, change := range map[string]func(*Ticket){
		"no purpose":     func(t *Ticket) { t.Purpose = "" },
		"long purpose":   func(t *Ticket) { t.Purpose = strings.Repeat("p", 65) },
		"no subject":     func(t *Ticket) { t.Subject = "" },
		"long subject":   func(t *Ticket) { t.Subject = strings.Repeat("s", 1025) },
		"no expiry":      func(t *Ticket) { t.Expiry = time.Time{} },
		"ends at start":  func(t *Ticket) { t.NotBefore = t.Expiry },
		"ends too early": func(t *Ticket) { t.NotBefore = t.Expiry.Add(time.Hour) },
	} {
		in := portal()
		change(&in)
		if _, err := k.Sign(in); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
}

func TestReplaceRefusesAndKeepsWhatIsInForce(t *testing.T) {
	t.Parallel()
	k := mustKeys(t, key("k", 1))
	text := mustSign(t, k, portal())
	for name, keys := range map[string][]Key{
		"none":         nil,
		"no id":        {key("", 1)},
		"a space":      {key("a b", 1)},
		"a long id":    {key(strings.Repeat("k", 65), 1)},
		"short secret": {{ID: "k", Secret: bytes.Repeat([]byte{1}, 31)}},
		"long secret":  {{ID: "k", Secret: bytes.Repeat([]byte{1}, 1025)}},
		"twice":        {key("k", 1), key("k", 2)},
	} {
		if err := k.Replace(keys...); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := k.Verify(text, Check{Purpose: "portal", Now: noon}); err != nil {
		t.Fatal(err)
	}
}

func TestKeysTurnWhileTicketsAreChecked(t *testing.T) {
	t.Parallel()
	k := mustKeys(t, key("a", 1))
	text := mustSign(t, k, portal())
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := k.Verify(text, Check{Purpose: "portal", Now: noon}); err != nil {
					t.Errorf("while keys turned: %v", err)
					return
				}
			}
		})
	}
	for range 500 {
		if err := errors.Join(k.Replace(key("b", 2), key("a", 1)), k.Replace(key("a", 1))); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	readers.Wait()
	if err := k.Replace(key("b", 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Verify(text, Check{Purpose: "portal", Now: noon}); !errors.Is(err, ErrUnknownKey) {
		t.Fatalf("a retired key's ticket: %v", err)
	}
}

func TestReadKeys(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte{0xfb, 0xff}, 16)
	std, url := base64.StdEncoding.EncodeToString(secret), base64.RawURLEncoding.EncodeToString(secret)
	keys, err := ReadKeys(strings.NewReader("# the new one first\n\n2026-11  " + std + "\n 2026-05 " + url + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || keys[0].ID != "2026-11" || keys[1].ID != "2026-05" || !bytes.Equal(keys[0].Secret, secret) || !bytes.Equal(keys[1].Secret, secret) {
		t.Fatalf("read %d keys, and not those", len(keys))
	}
	for name, text := range map[string]string{"no secret": "k", "three words": "k a b", "no base64": "k ???hidden"} {
		if _, err := ReadKeys(strings.NewReader("\n" + text)); err == nil || !strings.Contains(err.Error(), "line 2") || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	k := mustKeys(f, key("k", 1))
	f.Add(mustSign(f, k, portal()))
	f.Add("AQFr")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := k.Verify(text, Check{Purpose: "portal", Now: noon})
		if err == nil && got.Subject != "acme" {
			t.Fatalf("%q was never signed", text)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	k := mustKeys(b, key("k", 1))
	text := mustSign(b, k, portal())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Verify(text, Check{Purpose: "portal", Now: noon}); err != nil {
			b.Fatal(err)
		}
	}
}
