package chart

import (
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/period"
)

// picture is one file: a counter, and where its windows or periods begin.
type picture struct {
	file, title string
	counter     limit.Counter
	edges       []int
}

func pictures() []picture {
	const window = 20 * time.Second
	aligned := []int{0, 20, 40, 60}
	rate := func(a limit.Algorithm, burst int64) limit.Counter {
		return limit.Counter{Key: "picture", Algorithm: a, Limit: 20, Burst: burst, Window: window, Cost: 1}
	}
	return []picture{
		{"fixed-window.svg", "fixedWindow, 20 per 20 s", rate(limit.FixedWindow, 0), aligned},
		{"sliding-window.svg", "slidingWindow, 20 per 20 s", rate(limit.SlidingWindow, 0), aligned},
		{"token-bucket.svg", "tokenBucket, 20 per 20 s, burst 20", rate(limit.TokenBucket, 20), nil},
		{"gcra.svg", "gcra, 20 per 20 s, burst 5", rate(limit.GCRA, 5), nil},
		{"quota.svg", "quota, 60 per month (no end of a month within the picture)", limit.Counter{
			Key: "picture", Algorithm: limit.RenewingQuota, Limit: 60, Calendar: period.Month(), Cost: 1,
		}, nil},
	}
}

// Files draws every picture: name → content.
func Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, p := range pictures() {
		columns, err := drive(p.counter)
		if err != nil {
			return nil, err
		}
		files[p.file] = svg(p.title, columns, p.edges)
	}
	return files, nil
}
