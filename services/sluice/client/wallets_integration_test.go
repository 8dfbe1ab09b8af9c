//go:build integration

package client

import (
	"testing"
	"time"
)

func TestWallets(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	end := time.Now().UTC().AddDate(1, 0, 0).Format(time.RFC3339)
	s.must(t, "id: acme\nname: Acme\n", "customers", "apply", "-f", "-")
	s.must(t, "id: units\nsubject: {kind: tenant, value: acme}\nmetric: units\nlimit: {algorithm: quota, kind: prepaid}\n", "rules", "apply", "-f", "-")
	create := []string{"topups", "create", "acme", "units", "--amount", "40", "--key", "order-1", "--note", "order 1", "--priority", "2"}
	first := s.must(t, "", create...)
	holds(t, first, `"amount": 40`, `"balance": 40`, `"note": "order 1"`)
	if again := s.must(t, "", create...); again != first {
		t.Errorf("repeated it prints %s, not %s", again, first)
	}
	holds(t, s.must(t, "", "topups", "create", "acme", "units", "--amount", "2", "--expires-at", end), `"balance": 42`)
	holds(t, s.must(t, "", "wallets", "list", "acme"), "units", "42")
	holds(t, s.must(t, "", "wallets", "get", "acme", "units"), `"left": 40`, `"expiresAt": "`+end+`"`)
	s.refused(t, "expiresIn: must be left out", "", "topups", "create", "acme", "units", "--amount", "2", "--expires-at", end, "--expires-in", "720h")
	holds(t, s.must(t, "", "topups", "create", "acme", "units", "--amount", "3", "--expires-in", "720h"), `"balance": 45`, `"expiresAt"`)
	s.refused(t, "amount", "", "topups", "create", "acme", "units", "--amount", "-1")
	s.refused(t, "metric", "", "topups", "create", "acme", "exports", "--amount", "1")
	s.refused(t, "customer", "", "wallets", "list", "nobody")
}
