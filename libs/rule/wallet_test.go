package rule_test

import (
	"testing"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

func TestPrepaidRuleMakesAWalletsCounter(t *testing.T) {
	t.Parallel()
	for patch, algorithm := range map[string]limit.Algorithm{
		`{}`:                             limit.PrepaidQuota,
		`{"limit":{"overdraft":"once"}}`: limit.OverdraftQuota,
	} {
		ix := rule.New()
		if err := ix.Replace([]rules.Rule{parse(t, walletRule, patch)}); err != nil {
			t.Fatal(err)
		}
		m := ix.Match(&rule.Request{TenantID: "acme", Now: at(1)}, nil)
		c := m[0].Counter(7)
		if c.Algorithm != algorithm || !c.Wallet() || c.Cost != 7 || c.Key != rule.WalletCounter("acme", "m") || m[0].GrantsNothing() {
			t.Errorf("%s: %+v", patch, c)
		}
		if tenant, metric := m[0].Wallet(); tenant != "acme" || metric != "m" {
			t.Errorf("wallet of %s, %s", tenant, metric)
		}
	}
}

// A wallet is a horizon of its own, beside the month; of several rules that
// charge it the most specific does, once.
func TestWalletAndMonthBothHold(t *testing.T) {
	t.Parallel()
	req := &rule.Request{TenantID: "acme", Service: "s", Now: at(1)}
	ids, keys := keyed(t, req, parse(t, walletRule, `{"id":"all","subject":{"value":"*"}}`), parse(t, walletRule, `{"id":"own"}`),
		parse(t, walletRule, `{"id":"scoped","scope":{"service":"s"}}`), parse(t, quotaRule, `{"id":"month"}`))
	if len(ids) != 2 || ids[0] != "month" || ids[1] != "scoped" || keys[1] != rule.WalletCounter("acme", "m") {
		t.Errorf("%q hold, in %q", ids, keys)
	}
}

// What was bought is no number of a rule: an override of the metric leaves it alone.
func TestOverridesLeaveWalletsAlone(t *testing.T) {
	t.Parallel()
	ix := rule.New()
	if err := ix.Replace([]rules.Rule{parse(t, walletRule, `{}`)}); err != nil {
		t.Fatal(err)
	}
	for _, o := range []overrides.Override{{Unlimited: true}, {Limit: new(int64(5)), Period: "month"}} {
		o.Subject, o.Metric = rules.Subject{Kind: rules.SubjectTenant, Value: "acme"}, "m"
		c, err := rule.CompileOverride(o)
		if err != nil {
			t.Fatal(err)
		}
		ix.PutOverride(c)
		if m := ix.Match(&rule.Request{TenantID: "acme", Now: at(1)}, nil); m[0].Override != nil || m[0].Counter(1).Unlimited {
			t.Errorf("%+v", m[0].Counter(1))
		}
	}
}

func TestNormalizeGivesAWalletNoCalendar(t *testing.T) {
	t.Parallel()
	n := rule.Normalize(parse(t, walletRule, `{}`))
	if n.Limit.Timezone != "" || n.Limit.AnchorDay != 0 || n.Limit.Overdraft != rules.OverdraftNone || n.OnStoreLoss != rules.StoreLossClosed {
		t.Errorf("%+v %+v", n, n.Limit)
	}
	if found := rule.Validate(n); found != nil {
		t.Error(found)
	}
	was := rule.Normalize(parse(t, quotaRule, `{"limit":{"timezone":"Europe/Paris"}}`))
	if err := rule.Carry(&was, &n, at(1)); err != nil || n.Limit.Previous != nil {
		t.Errorf("%+v, %v", n.Limit, err)
	}
	if err := rule.Carry(&n, &was, at(1)); err != nil || was.Limit.Previous != nil {
		t.Errorf("%+v, %v", was.Limit, err)
	}
}
