package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
)

// Options are the client's for this connection, without its users' time-outs.
// Errors name keys below at, such as "redis.cache.".
func (c *RedisConnection) Options(at string) (*redis.UniversalOptions, error) {
	secured, err := c.TLS.client(at)
	if err != nil {
		return nil, err
	}
	return &redis.UniversalOptions{
		Addrs:            c.Addresses(),
		Username:         c.Username,
		Password:         c.Password.Reveal(),
		DB:               c.DB,
		PoolSize:         c.PoolSize,
		TLSConfig:        secured,
		IsClusterMode:    c.Mode == RedisCluster,
		MasterName:       c.MasterName,
		SentinelUsername: c.SentinelUsername,
		SentinelPassword: c.SentinelPassword.Reveal(),
	}, nil
}

// client is nil where TLS is off.
func (c *RedisTLS) client(at string) (*tls.Config, error) {
	if !c.Enabled {
		return nil, nil
	}
	secured := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.CAFile == "" {
		return secured, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("%stls.caFile: %w", at, err)
	}
	secured.RootCAs = x509.NewCertPool()
	if !secured.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%stls.caFile: no certificate in %s", at, c.CAFile)
	}
	return secured, nil
}
