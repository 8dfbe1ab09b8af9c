package jwt

import (
	"errors"
	"testing"
)

func BenchmarkVerify(b *testing.B) {
	for _, c := range []struct {
		name   string
		kid    string
		cached int
		want   error
	}{
		{"cached", "rsa1", 0, nil},
		{"RS256", "rsa1", -1, nil},
		{"ES256", "ec1", -1, nil},
		{"EdDSA", "ed1", -1, nil},
		{"unknown_kid", "rsa2", 0, ErrUnknownKey},
	} {
		b.Run(c.name, func(b *testing.B) {
			_, v := serveFetched(b, func(cfg *Config) { cfg.CachedTokens = c.cached })
			token := signers()[c.kid].token(goodClaims(testNow))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(token); !errors.Is(err, c.want) {
					b.Fatal(err)
				}
			}
		})
	}
}
