package gateway

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
)

func basic(userAndPassword string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(userAndPassword))
}

// A key that is slightly misplaced must not reach the upstream: whoever reads
// its logs could use it.
func TestMisplacedKeysAreRefusedByTheHeadersName(t *testing.T) {
	t.Parallel()
	s := keyedStand(t)
	misplaced := []string{
		secret, "Bearer\t" + secret, "Bearer:" + secret, "Token " + secret, "Basic " + secret, `Bearer "` + secret + `"`,
		"Bearer foo, Bearer " + secret, "Token token=" + secret, `Digest username="x", response="` + secret + `"`,
		basic(secret + ":"), basic("api:" + secret), "bASIC  " + strings.TrimPrefix(basic(secret+":"), "Basic "),
	}
	for _, value := range misplaced {
		a := s.get("/demo/x", "Authorization", value)
		if p := a.problem(t); a.StatusCode != http.StatusBadRequest || !strings.Contains(p.Detail, "Authorization") || strings.Contains(a.body, "slk_") {
			t.Errorf("%q: %d %s", value, a.StatusCode, a.body)
		}
	}
	if n, all := len(s.requests()), s.events(); n != 0 || len(all) != 0 {
		t.Errorf("the upstream has seen %d requests, events %+v", n, all)
	}
	// Beside a key in X-Api-Key the header is ignored, bad or not, and kept back.
	for _, value := range append(misplaced, "Bearer "+secret+", Bearer x") {
		if a := s.get("/demo/x", "X-Api-Key", "slk_app", "Authorization", value, "Authorization", "Basic abc", "Proxy-Authorization", value, "Proxy_Authorization", value); a.StatusCode != http.StatusOK {
			t.Fatalf("%q: %d %s", value, a.StatusCode, a.body)
		}
		for name, got := range s.last().Header {
			if strings.Contains(strings.Join(got, " "), "slk_") || strings.HasPrefix(name, "Proxy") {
				t.Errorf("%q: %s is forwarded: %q", value, name, got)
			}
		}
		if got := s.last().Header.Values("Authorization"); len(got) != 1 || got[0] != "Basic abc" {
			t.Errorf("%q: upstream got %q", value, got)
		}
	}
}

// Other credentials may have the prefix's letters in them, base64url by chance.
func TestLettersOfThePrefixInOtherCredentialsAreNoKey(t *testing.T) {
	t.Parallel()
	s := keyedStand(t)
	for _, value := range []string{
		"Bearer eyJhbGciOi.aslk_b.-slk_c", "Bearer x.slk_y", "Bearer SLK_X", "Basic !slk", "Basic", "Token slk", basic("desk_lamp:xslk_y"),
	} {
		if a := s.get("/demo/x", "Authorization", value); a.StatusCode != http.StatusOK {
			t.Fatalf("%q: %d %s", value, a.StatusCode, a.body)
		}
		if got := s.last().Header.Get("Authorization"); got != value {
			t.Errorf("%q arrived as %q", value, got)
		}
	}
}

// Names that some servers read as the gate's own are treated as those are.
func TestHopsOfStrangersAreForgottenHoweverTheyAreSpelt(t *testing.T) {
	t.Parallel()
	spelt := []string{
		"X_Forwarded_For", "evil", "X-Forwarded_For", "evil", "x_forwarded-host", "evil", "X_Forwarded_Proto", "evil", "X_Forwarded_Port", "evil",
	}
	dashes := []string{"X-Forwarded-Port", "8443", "X-Forwarded-Prefix", "/p", "X-Forwarded-Client-Cert", "c"}
	for _, trusted := range []bool{false, true} {
		o := standOptions{}
		if trusted {
			o.trusted = []string{loopback}
		}
		s := newStand(t, o)
		s.get("/demo/x", append(append([]string{"Forwarded", "for=evil"}, spelt...), dashes...)...)
		up := s.last().Header
		for name, values := range up {
			if strings.Contains(strings.Join(values, " "), "evil") {
				t.Errorf("trusted %v: upstream got %s: %q", trusted, name, values)
			}
		}
		for i := 0; i < len(dashes); i += 2 {
			if got := up.Get(dashes[i]); (got == dashes[i+1]) != trusted {
				t.Errorf("trusted %v: %s is %q", trusted, dashes[i], got)
			}
		}
		if up.Get("X-Forwarded-For") != "127.0.0.1" || up.Get("X-Forwarded-Proto") != "http" {
			t.Errorf("trusted %v: upstream got %v", trusted, up)
		}
	}
}
