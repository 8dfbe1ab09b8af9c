package cache_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-platform/sluice/libs/cache"
)

type product struct{ Name string }

// With Options.Redis one process of the fleet loads a key; without it, as here, one caller of the process does.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	products, err := cache.New(cache.Options[product]{
		Family: "product", TTL: time.Minute, StaleWhileRevalidate: 10 * time.Second,
		Load: func(_ context.Context, id string) (cache.Loaded[product], error) {
			fmt.Println("asking the database for", id)
			return cache.Loaded[product]{Value: product{Name: "tea pot"}}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	go products.Run(ctx)
	for range 3 {
		p, err := products.Get(ctx, "4711")
		fmt.Println(p.Name, err)
	}
	// Output:
	// asking the database for 4711
	// tea pot <nil>
	// tea pot <nil>
	// tea pot <nil>
}
