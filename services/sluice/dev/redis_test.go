package dev

import (
	"testing"
	"time"
)

// Counters expire: without a clock that moves, a bucket would stay dry for ever.
func TestKeysExpireInTheRedisInProcess(t *testing.T) {
	t.Parallel()
	r, err := startTicking("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop()
	if err := r.server.Set("k", "v"); err != nil {
		t.Fatal(err)
	}
	r.server.SetTTL("k", 200*time.Millisecond)
	deadline := time.After(2 * time.Minute)
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for r.server.Exists("k") {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatal("the key never expired")
		}
	}
}
