package stream

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// authority writes a certificate that is its own authority, for 127.0.0.1.
func authority(t *testing.T, dir string) (certFile, keyFile string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile, pair
}

// Each mechanism reaches a broker that demands it, over TLS with a certificate
// of our own; who lacks any of it does not.
func TestSecuredKafkaIsReached(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile, pair := authority(t, dir)
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	passwordFile := filepath.Join(dir, "password")
	if err := os.WriteFile(passwordFile, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mechanism := range []string{MechanismPlain, MechanismScramSHA256, MechanismScramSHA512} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(strings.ToUpper(mechanism), "sluice", "s3cret"),
				kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(broker.Close)
			good := Config{
				Brokers: broker.ListenAddrs(),
				TLS:     TLSConfig{Enabled: true, CAFile: certFile, CertFile: certFile, KeyFile: keyFile},
				SASL:    SASLConfig{Mechanism: mechanism, Username: "sluice", PasswordFile: passwordFile},
			}
			reaches := func(what string, want bool, change func(*Config)) {
				t.Helper()
				cfg := good
				change(&cfg)
				if err := cfg.Check(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				client, err := kgo.NewClient(append(cfg.ClientOptions(), kgo.RequestRetries(0), kgo.RetryTimeout(time.Second))...)
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				if err := client.Ping(ctx); (err == nil) != want {
					t.Errorf("%s: %v", what, err)
				}
			}
			reaches("all", true, func(*Config) {})
			reaches("a wrong password", false, func(c *Config) { c.SASL.PasswordFile = keyFile })
			reaches("no SASL", false, func(c *Config) { c.SASL = SASLConfig{} })
			reaches("no certificate", false, func(c *Config) { c.TLS.CertFile, c.TLS.KeyFile = "", "" })
			reaches("another name", false, func(c *Config) { c.TLS.ServerName = "kafka.example" })
			reaches("no TLS", false, func(c *Config) { c.TLS = TLSConfig{} })
		})
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile, _ := authority(t, dir)
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sasl := SASLConfig{Mechanism: MechanismPlain, Username: "u", PasswordFile: certFile}
	for want, c := range map[string]Config{
		"":                                   {},
		"tls.enabled: false":                 {TLS: TLSConfig{CAFile: certFile}},
		"tls.caFile: open":                   {TLS: TLSConfig{Enabled: true, CAFile: filepath.Join(dir, "none")}},
		"tls.caFile: no certificate":         {TLS: TLSConfig{Enabled: true, CAFile: keyFile}},
		"tls.certFile: must be":              {TLS: TLSConfig{Enabled: true, CertFile: certFile}},
		"tls.certFile: tls":                  {TLS: TLSConfig{Enabled: true, CertFile: keyFile, KeyFile: certFile}},
		"sasl.mechanism: empty":              {SASL: SASLConfig{Username: "u"}},
		"sasl.mechanism: must be plain":      {SASL: SASLConfig{Mechanism: "gssapi", Username: "u", PasswordFile: certFile}},
		"sasl.username":                      {SASL: SASLConfig{Mechanism: MechanismPlain, PasswordFile: certFile}},
		"sasl.passwordFile: empty":           {SASL: SASLConfig{Mechanism: MechanismPlain, Username: "u"}},
		"sasl.passwordFile: " + empty:        {SASL: SASLConfig{Mechanism: MechanismPlain, Username: "u", PasswordFile: empty}},
		"tls.enabled: false, but\nand right": {SASL: sasl, TLS: TLSConfig{ServerName: "x"}},
	} {
		err := c.Check()
		want, _, _ = strings.Cut(want, "\n")
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}
