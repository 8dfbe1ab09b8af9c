//go:build integration

package client

import "testing"

func TestWallets(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.must(t, "id: acme\nname: Acme\n", "customers", "apply", "-f", "-")
	s.must(t, "id: units\nsubject: {kind: tenant, value: acme}\nmetric: units\nlimit: {algorithm: quota, kind: prepaid}\n", "rules", "apply", "-f", "-")
	create := []string{"topups", "create", "acme", "units", "--amount", "40", "--key", "order-1", "--note", "order 1", "--priority", "2"}
	first := s.must(t, "", create...)
	holds(t, first, `"amount": 40`, `"balance": 40`, `"note": "order 1"`)
	if again := s.must(t, "", create...); again != first {
		t.Errorf("repeated it prints %s, not %s", again, first)
	}
	holds(t, s.must(t, "", "topups", "create", "acme", "units", "--amount", "2", "--expires-at", "2099-01-01T00:00:00Z"), `"balance": 42`)
	holds(t, s.must(t, "", "wallets", "list", "acme"), "units", "42")
	holds(t, s.must(t, "", "wallets", "get", "acme", "units"), `"left": 40`, `"expiresAt": "2099-01-01T00:00:00Z"`)
	s.refused(t, "amount", "", "topups", "create", "acme", "units", "--amount", "-1")
	s.refused(t, "metric", "", "topups", "create", "acme", "exports", "--amount", "1")
	s.refused(t, "customer", "", "wallets", "list", "nobody")
}
