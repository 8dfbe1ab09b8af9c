package took

import (
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var a, b, sum Times
	for i := range 1000 {
		to := &a
		if i%2 == 0 {
			to = &b
		}
		to.Count(time.Duration(i+1) * time.Millisecond)
	}
	b.Count(2 * time.Second)
	sum.Add(&a)
	sum.Add(&b)
	for q, want := range map[float64]time.Duration{0.5: 501 * time.Millisecond, 0.99: 991 * time.Millisecond, 1: 2 * time.Second} {
		if got := sum.Quantile(q); got < want*98/100 || got > want*102/100 {
			t.Errorf("quantile %g is %s, want %s within 2 %%", q, got, want)
		}
	}
	if sum.N != 1001 || sum.Max != 2*time.Second {
		t.Errorf("%+v", &sum)
	}
	if none := new(Times).Quantile(0.5); none != 0 {
		t.Errorf("none take %s", none)
	}
}
