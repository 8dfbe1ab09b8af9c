package stream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	saslplain "github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// TLSConfig is TLS to Kafka. The files are read anew for each connection, so
// that renewed certificates need no restart.
type TLSConfig struct {
	Enabled    bool   `koanf:"enabled" doc:"Whether to use TLS."`
	CAFile     string `koanf:"caFile" doc:"PEM file of the certificate authorities trusted for it; empty means the system's."`
	CertFile   string `koanf:"certFile" doc:"PEM file of the client's certificate, where the brokers demand one; goes with keyFile."`
	KeyFile    string `koanf:"keyFile" doc:"PEM file of that certificate's key."`
	ServerName string `koanf:"serverName" doc:"Name expected in the brokers' certificates; empty means each one's host."`
}

// Mechanisms of SASL.
const (
	MechanismPlain       = "plain"
	MechanismScramSHA256 = "scram-sha-256"
	MechanismScramSHA512 = "scram-sha-512"
)

// SASLConfig is how this process proves to Kafka who it is.
type SASLConfig struct {
	Mechanism    string `koanf:"mechanism" doc:"plain, scram-sha-256 or scram-sha-512; empty is no SASL. With plain the password is sent as it is: use TLS."`
	Username     string `koanf:"username" doc:"User of Kafka."`
	PasswordFile string `koanf:"passwordFile" doc:"File that holds that user's password; read anew for each connection, so that a new one needs no restart."`
}

// Check names the setting that is wrong, nil where none is. Files that are
// named must be there.
func (c Config) Check() error {
	var errs []error
	wrong := func(key, message string) { errs = append(errs, fmt.Errorf("%s: %s", key, message)) }
	switch t := c.TLS; {
	case !t.Enabled && (t.CAFile != "" || t.CertFile != "" || t.KeyFile != "" || t.ServerName != ""):
		wrong("tls.enabled", "false, but other settings of tls are given")
	case (t.CertFile == "") != (t.KeyFile == ""):
		wrong("tls.certFile", "must be given together with tls.keyFile, or neither")
	case t.Enabled:
		if _, err := t.config(""); err != nil {
			errs = append(errs, err)
		}
	}
	switch s := c.SASL; {
	case s.Mechanism == "":
		if s.Username != "" || s.PasswordFile != "" {
			wrong("sasl.mechanism", "empty, but other settings of sasl are given: give plain, scram-sha-256 or scram-sha-512")
		}
	case s.option() == nil:
		wrong("sasl.mechanism", "must be plain, scram-sha-256 or scram-sha-512")
	case s.Username == "":
		wrong("sasl.username", "empty: give the user of Kafka")
	case s.PasswordFile == "":
		wrong("sasl.passwordFile", "empty: give the file that holds the password")
	default:
		if _, err := s.secret(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// dialTimeout bounds a connection's making, handshake included.
const dialTimeout = 3 * time.Second

func (t TLSConfig) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", addr, err)
	}
	secured, err := t.config(host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return (&tls.Dialer{Config: secured}).DialContext(ctx, network, addr)
}

func (t TLSConfig) config(host string) (*tls.Config, error) {
	secured := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if secured.ServerName == "" {
		secured.ServerName = host
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tls.caFile: %w", err)
		}
		secured.RootCAs = x509.NewCertPool()
		if !secured.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.caFile: no certificate in %s", t.CAFile)
		}
	}
	if t.CertFile != "" {
		own, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("tls.certFile: %w", err)
		}
		secured.Certificates = []tls.Certificate{own}
	}
	return secured, nil
}

// option is nil where the mechanism is not known.
func (s SASLConfig) option() sasl.Mechanism {
	switch s.Mechanism {
	case MechanismPlain:
		return saslplain.Plain(func(context.Context) (saslplain.Auth, error) {
			secret, err := s.secret()
			return saslplain.Auth{User: s.Username, Pass: secret}, err
		})
	case MechanismScramSHA256:
		return scram.Sha256(s.scram)
	case MechanismScramSHA512:
		return scram.Sha512(s.scram)
	}
	return nil
}

func (s SASLConfig) scram(context.Context) (scram.Auth, error) {
	secret, err := s.secret()
	return scram.Auth{User: s.Username, Pass: secret}, err
}

// secret is the password. A file's last line may end with a line break.
func (s SASLConfig) secret() (string, error) {
	text, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("sasl.passwordFile: %w", err)
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("sasl.passwordFile: %s is empty", s.PasswordFile)
	}
	return secret, nil
}

// secured are the options for TLS and SASL, none without.
func (c Config) secured() []kgo.Opt {
	var opts []kgo.Opt
	if c.TLS.Enabled {
		opts = append(opts, kgo.Dialer(c.TLS.dial))
	} else {
		opts = append(opts, kgo.DialTimeout(dialTimeout))
	}
	if m := c.SASL.option(); m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts
}
