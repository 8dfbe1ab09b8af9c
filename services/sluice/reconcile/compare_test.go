package reconcile

import (
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/limit/redisstore"
)

func TestCauseTellsRefundsFromCharges(t *testing.T) {
	t.Parallel()
	kept := redisstore.Totals{Consumed: 8, Refunded: 7}
	for says, counted := range map[string]redisstore.Totals{
		"given back, and not checkpointed":  {Consumed: 8, Refunded: 8},
		"charged, and not checkpointed":     {Consumed: 9, Refunded: 8},
		"Redis lost the counter":            {},
		"Redis knows less than was charged": {Consumed: 8, Refunded: 6},
		"each knows of charges":             {Consumed: 9, Refunded: 6},
	} {
		if got := cause(counted, kept); !strings.HasPrefix(got, says) {
			t.Errorf("%+v: %q, want %q", counted, got, says)
		}
	}
}
