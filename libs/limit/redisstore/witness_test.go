package redisstore

import "testing"

func TestSameAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seen, local string
		same        bool
	}{
		{"127.0.0.1:5", "127.0.0.1:5", true},
		{"[::1]:5", "[::1]:5", true},
		{"10.0.0.1:5", "[::ffff:10.0.0.1]:5", true},
		{"[fe80::1]:5", "[fe80::1%eth0]:5", true},
		{"127.0.0.1:6", "127.0.0.1:5", false},
		{"10.0.0.2:5", "10.0.0.1:5", false},
		{"/tmp/redis.sock:0", "@", false},
		{"", "", false},
	} {
		if got := sameAddress(c.seen, c.local); got != c.same {
			t.Errorf("%q and %q: %t", c.seen, c.local, got)
		}
	}
}
