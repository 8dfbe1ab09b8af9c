package redisstore

import (
	"slices"
	"testing"
)

// What CLUSTER NODES says of the node that is asked.
func TestClaims(t *testing.T) {
	t.Parallel()
	other := "8b30 127.0.0.1:2@3,host master - 0 1 2 connected 5461-10922 [3-<-9a]\n"
	for name, c := range map[string]struct {
		text    string
		slots   []int
		settled bool
	}{
		"ranges and single ones": {other + "9a 127.0.0.1:1@2 myself,master - 0 0 1 connected 7 0-2\n", []int{0, 1, 2, 7}, true},
		"one on its way to it":   {"9a 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-2 [9-<-8b30]\n" + other, nil, false},
		"one on its way from it": {"9a 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-2 [1->-8b30]\n", nil, false},
		"no slots":               {"9a 127.0.0.1:1@2 myself,master - 0 0 1 connected\n", nil, true},
		"not itself":             {other, nil, false},
		"something else":         {"ERR", nil, false},
	} {
		slots, settled := claims(c.text)
		if !slices.Equal(slots, c.slots) || settled != c.settled {
			t.Errorf("%s: %v, %t", name, slots, settled)
		}
	}
}
