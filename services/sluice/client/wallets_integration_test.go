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

// Where this machine's clock and the control plane's are a year apart, nothing
// is sold, and the command says why.
func TestACommandWhoseClockIsOffSellsNothing(t *testing.T) {
	t.Parallel()
	for _, years := range []int{-1, 1} {
		off := func() time.Time { return time.Now().AddDate(years, 0, 0) }
		s := newServerAt(t, off)
		// Rules are written all the same: a file of them names the tenant.
		s.must(t, "id: units\nsubject: {kind: tenant, value: acme}\nmetric: units\nlimit: {algorithm: quota, kind: prepaid}\n", "rules", "apply", "-f", "-")
		const says = "Date: must be within 15m0s of the control plane's clock"
		s.refused(t, says, "", "customers", "create", "acme", "--name", "Acme")
		s.refused(t, says, proPlan, "plans", "apply", "-f", "-")
		s.refused(t, says, "", "topups", "create", "acme", "units", "--amount", "5", "--key", "k")
		s.refused(t, says, "", "subscriptions", "create", "--customer", "acme", "--plan", "pro")
		s.refused(t, says, "", "customers", "link", "acme")
		s.refused(t, says, "", "overrides", "set", "tenant", "acme", "--metric", "units", "--limit", "5")
		if out := s.must(t, "", "customers", "list", "-o", "json"); out != "[]\n" {
			t.Errorf("there are customers: %s", out)
		}
	}
}
