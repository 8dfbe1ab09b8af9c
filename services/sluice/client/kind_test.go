package client

import (
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/rules"
)

func TestLimitText(t *testing.T) {
	t.Parallel()
	limit, burst := int64(30), int64(10)
	for want, r := range map[string]rules.Rule{
		"unlimited":           {Unlimited: true, Limit: &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaPrepaid}},
		"quota prepaid":       {Limit: &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaPrepaid}},
		"gcra 30/1m burst 10": {Limit: &rules.Limit{Algorithm: rules.AlgorithmGCRA, Limit: &limit, Burst: &burst, Window: "1m"}},
		"quota 30/month":      {Limit: &rules.Limit{Algorithm: rules.AlgorithmQuota, Kind: rules.QuotaRenewing, Limit: &limit, Period: "month", Timezone: "UTC"}},
	} {
		if got := limitText(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
