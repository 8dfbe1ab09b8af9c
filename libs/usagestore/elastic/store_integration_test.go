//go:build integration

package elastic

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/sluice-platform/sluice/libs/servertest"
	"github.com/sluice-platform/sluice/libs/usagestore"
	"github.com/sluice-platform/sluice/libs/usagestore/storetest"
)

func TestConformance(t *testing.T) {
	server := servertest.Search(t)
	var stores atomic.Int64
	storetest.Run(t, storetest.Harness{
		New: func(t *testing.T) usagestore.Store {
			// A letter behind the number: one prefix never continues another.
			prefix := server.IndexPrefix + strconv.FormatInt(stores.Add(1), 10) + "x"
			s, err := New(Config{URL: server.URL, Flavor: server.Flavor, IndexPrefix: prefix})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Refresh: func(t *testing.T, s usagestore.Store) {
			if err := s.(*Store).Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	})
}
