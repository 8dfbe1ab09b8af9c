package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/service"
)

var noon = time.Date(2026, 7, 23, 12, 0, 0, 0, time.UTC)

func key(id string, b byte) service.Secret {
	return service.Secret(id + ":" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(b)), 32))))
}

// The example of the Standard Webhooks libraries: other languages' receivers
// verify what is sent.
func TestSignatureIsThatOfTheSpecification(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	secret := service.Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err := sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), []service.Secret{secret}); err != nil {
		t.Fatal(err)
	}
	if got := h.Get("webhook-signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Fatalf("signature %s", got)
	}
}

func TestVerifyTakesEitherSecretAndNothingElse(t *testing.T) {
	t.Parallel()
	body := []byte(`{"a":1}`)
	former, present := NewSecret(), NewSecret()
	signed := func() http.Header {
		h := http.Header{}
		if err := sign(h, "m-1", noon, body, []service.Secret{present, former}); err != nil {
			t.Fatal(err)
		}
		return h
	}
	for name, secret := range map[string]service.Secret{"present": present, "former": former} {
		if err := Verify(signed(), body, secret, noon.Add(Tolerance)); err != nil {
			t.Errorf("%s secret: %v", name, err)
		}
	}
	change := func(name, value string) http.Header { h := signed(); h.Set(name, value); return h }
	for name, c := range map[string]struct {
		h      http.Header
		body   string
		secret service.Secret
		now    time.Time
		want   error
	}{
		"another secret":    {signed(), `{"a":1}`, NewSecret(), noon, ErrSignature},
		"another body":      {signed(), `{"a":2}`, present, noon, ErrSignature},
		"another id":        {change(HeaderID, "m-2"), `{"a":1}`, present, noon, ErrSignature},
		"another timestamp": {change(HeaderTimestamp, "1784808001"), `{"a":1}`, present, noon, ErrSignature},
		"no signature":      {change(HeaderSignature, ""), `{"a":1}`, present, noon, ErrSignature},
		"a replay":          {signed(), `{"a":1}`, present, noon.Add(Tolerance + time.Second), ErrTimestamp},
		"from the future":   {signed(), `{"a":1}`, present, noon.Add(-Tolerance - time.Second), ErrTimestamp},
		"no timestamp":      {change(HeaderTimestamp, ""), `{"a":1}`, present, noon, ErrTimestamp},
	} {
		if err := Verify(c.h, []byte(c.body), c.secret, c.now); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSealedSecretOpensForItsWebhookWithAnyKeyOfTheRing(t *testing.T) {
	t.Parallel()
	old, err := New(Config{Keys: []service.Secret{key("k1", 'a')}, Timeout: time.Second, GiveUpAfter: time.Hour}, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, sealed, err := old.NewSecret("wh_1")
	if err != nil || strings.Contains(sealed, plain.Reveal()) || !strings.HasPrefix(sealed, "k1:") {
		t.Fatalf("sealed %s, %v", sealed, err)
	}
	if _, again, _ := old.NewSecret("wh_1"); again == sealed {
		t.Fatal("two secrets are sealed alike")
	}
	rotated, err := New(Config{Keys: []service.Secret{key("k2", 'b'), key("k1", 'a')}, Timeout: time.Second, GiveUpAfter: time.Hour}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := rotated.Open("wh_1", []string{sealed}); err != nil || opened[0] != plain {
		t.Fatalf("opened %v, %v", opened, err)
	}
	for name, open := range map[string]func() error{
		"another webhook": func() error { _, err := rotated.Open("wh_2", []string{sealed}); return err },
		"changed":         func() error { _, err := rotated.Open("wh_1", []string{sealed[:len(sealed)-4] + "AAAA"}); return err },
		"no base64":       func() error { _, err := rotated.Open("wh_1", []string{"k1:?"}); return err },
		"no such key":     func() error { _, err := rotated.Open("wh_1", []string{"k3" + sealed[2:]}); return err },
		"none":            func() error { _, err := rotated.Open("wh_1", nil); return err },
	} {
		if err := open(); !errors.Is(err, ErrSecret) || strings.Contains(fmt.Sprint(err), sealed[3:]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	none, err := New(DefaultConfig(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := none.NewSecret("wh_1"); !errors.Is(err, ErrNoKeys) {
		t.Errorf("without keys: %v", err)
	}
}

func TestConfigurationIsRefusedByKeyAndNeverShown(t *testing.T) {
	t.Parallel()
	good := func() Config {
		return Config{Keys: []service.Secret{key("k1", 'a')}, Timeout: time.Second, GiveUpAfter: time.Hour}
	}
	for says, spoil := range map[string]func(*Config){
		"webhooks.keys[1]: must be id:base64":                        func(c *Config) { c.Keys = append(c.Keys, "k2:c2hvcnQ=") },
		"webhooks.keys[0]: must be id:base64":                        func(c *Config) { c.Keys[0] = c.Keys[0][3:] },
		"webhooks.keys[1]: the id k1 is used":                        func(c *Config) { c.Keys = append(c.Keys, key("k1", 'b')) },
		`webhooks.allow[0]: "10.0.0.1" is no`:                        func(c *Config) { c.Allow = []string{"10.0.0.1"} },
		"webhooks.timeout and webhooks.giveUpAfter must be positive": func(c *Config) { c.Timeout = 0 },
	} {
		c := good()
		spoil(&c)
		err := c.Check()
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
		for _, k := range c.Keys {
			if err != nil && strings.Contains(err.Error(), k.Reveal()) {
				t.Errorf("%q shows a key", says)
			}
		}
		if _, err := New(c, nil); err == nil {
			t.Errorf("%q: New takes it", says)
		}
	}
}
