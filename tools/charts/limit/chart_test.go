package chart

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-platform/sluice/libs/limit"
)

func TestPicturesAreCurrent(t *testing.T) {
	t.Parallel()
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("../../../docs/algorithms", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("docs/algorithms/%s is stale: make generate", name)
		}
	}
}

// What the page says of the pictures: both bursts pass round a fixed window's
// edge, a sliding window cuts the second, a bucket has refilled three tokens.
func TestWhatThePageSays(t *testing.T) {
	t.Parallel()
	for _, p := range pictures() {
		columns, err := drive(p.counter)
		if err != nil {
			t.Fatal(err)
		}
		first, second := columns[18].passed, columns[21].passed
		switch a := p.counter.Algorithm; a {
		case limit.FixedWindow:
			if first != 20 || second != 20 {
				t.Errorf("%s: %d and %d passed, want 20 and 20", a, first, second)
			}
		case limit.SlidingWindow:
			if first != 20 || second > 3 {
				t.Errorf("%s: %d and %d passed, want 20 and hardly any", a, first, second)
			}
		case limit.TokenBucket:
			if first != 20 || second < 2 || second > 4 {
				t.Errorf("%s: %d and %d passed, want 20 and about 3", a, first, second)
			}
		case limit.GCRA:
			if first < 5 || first > 6 {
				t.Errorf("%s: %d passed of the first burst, want its burst of 5 and what refills within the second", a, first)
			}
		case limit.RenewingQuota:
			sum := 0
			for _, c := range columns {
				sum += c.passed
			}
			if sum != 60 {
				t.Errorf("%s: %d passed, want its limit of 60", a, sum)
			}
		}
	}
}
