package counter

import "testing"

func TestCountersSayWhoseTheyAre(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]struct {
		kind, value, period string
		shadow              bool
	}{
		"{t:acme}:t::reports:quota:month:202607":                      {"tenant", "acme", "month:202607", false},
		"{t:a%3Ab}:u:u%201:reports:quota:day@Europe/Paris:20260329":   {"user", "a:b/u 1", "day@Europe/Paris:20260329", false},
		"{t:acme}:a:app:reports:quota-shadow:month:202607":            {"application", "acme/app", "", true},
		"{t:acme}:k:key-1:quota-shadow:quota:never:all":               {"apiKey", "key-1", "never:all", false},
		"{s:pay}:s::reports:quota:month:202607":                       {"service", "pay", "month:202607", false},
		"{s:pay}:e:GET%20/pay/%7Bid%7D:reports:quota:hour:2026072314": {"endpoint", "pay GET /pay/{id}", "hour:2026072314", false},
		"{-}:t::reports:quota:month:202607":                           {"tenant", "", "month:202607", false},
		"{t:acme}:t::reports:quota":                                   {"tenant", "acme", "", false},
		"{t:a%00%FF}:t::reports:quota":                                {"tenant", "a\uFFFD\uFFFD", "", false},
		"no counter at all":                                           {"", "no counter at all", "", false},
	} {
		s := Subject(id)
		if s.Kind != want.kind || s.Value != want.value {
			t.Errorf("%s: subject %+v", id, s)
		}
		if !want.shadow && Calendar(id) != want.period {
			t.Errorf("%s: period %q", id, Calendar(id))
		}
		if Shadow(id) != want.shadow {
			t.Errorf("%s: shadow %v", id, !want.shadow)
		}
	}
}

func TestIdentitiesNameTenantAndPeriod(t *testing.T) {
	t.Parallel()
	for id, want := range map[string][2]string{
		"{t:acme}:t::reports:quota:month:202607":          {"acme", "202607"},
		"{t:a%3Ab%7D%25}:u:u1:reports:quota:day:20260723": {"a:b}%", "20260723"},
		"{s:payments}:s::pay:quota:month:202607":          {"", "202607"},
		"{-}:u::pay:quota:month:202607":                   {"", "202607"},
		"{t:acme}:t::calls:gcra:30:60000000":              {"acme", ""},
		"nonsense":                                        {"", ""},
		"{t:open":                                         {"", ""},
	} {
		if got := [2]string{Tenant(id), Period(id)}; got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}
