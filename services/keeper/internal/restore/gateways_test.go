package restore

import (
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/restore"
)

// A gateway that was there before the loss is waited for, also when the loss took
// its name along.
func TestGatewayThatSleepsIsAwaited(t *testing.T) {
	t.Parallel()
	now := time.Now()
	awaited := map[string]time.Time{"asleep": now, "gone": now.Add(-goneAfter)}
	all := []restore.Gateway{{Name: "here", Seen: now, Epoch: "now"}, {Name: "old", Seen: now.Add(-time.Minute), Epoch: "before"}}
	if names := missing(awaited, all, now, "now"); len(names) != 1 || names[0] != "asleep" {
		t.Errorf("missing %v, want the one that sleeps", names)
	}
}
