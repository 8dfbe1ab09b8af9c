package cache

import "time"

// rehearseFlags are the command's, as they were given.
type rehearseFlags struct {
	route, paths, redisURL, config, output string
	hottest                                hottest
	rate, speedUp, slowBy                  float64
	nodes                                  int
	duration, latency                      time.Duration
	scenarios                              []string
}
