package redisstore

import (
	"crypto/rand"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-platform/sluice/libs/limit/redisstore/internal/epoch"
)

// declareWhole says, in a keeper's stead, that there is nothing to restore.
func declareWhole(t testing.TB, client redis.UniversalClient, prefix string) {
	t.Helper()
	all, err := epoch.Processes(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		standings, err := epoch.Do(t.Context(), client, prefix, all[i].Slots, epoch.Look, "")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(standings, func(st epoch.Standing) bool { return !st.Whole() || st.Epoch() != standings[0].Epoch() }) {
			continue
		}
		token := rand.Text()
		home, err := epoch.Do(t.Context(), client, prefix, all[i].Slots[:1], epoch.Reopen, token)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range []epoch.Op{epoch.Join, epoch.Seal} {
			if _, err := epoch.Do(t.Context(), client, prefix, all[i].Slots, op, home[0].Epoch()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// runID is the process's that the store's calls are sent to.
func runID(t testing.TB, s *Store) string {
	t.Helper()
	id, err := s.servers.only.bound.Load().process(t.Context(), s.text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
