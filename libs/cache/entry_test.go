package cache

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestEnvelopeRoundTrip(t *testing.T) {
	t.Parallel()
	for _, e := range []envelope{
		{fence: 1, logical: time.Millisecond, physical: 2 * time.Second, payload: []byte{}},
		{fence: 9_007_199_254_740_991, logical: maxTTL, physical: maxTTL, swr: time.Hour, sie: 24 * time.Hour, delta: 900 * time.Millisecond, payload: []byte("v|0:\x00")},
		{fence: 1_764_453_408_000_000, logical: time.Second, physical: 2 * time.Second, negative: true, payload: []byte{}},
	} {
		got, err := decodeEnvelope(string(e.encode()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.payload, e.payload) {
			t.Errorf("payload %q", got.payload)
		}
		got.payload, e.payload = nil, nil
		if got.fence != e.fence || got.logical != e.logical || got.physical != e.physical || got.swr != e.swr || got.sie != e.sie || got.delta != e.delta || got.negative != e.negative {
			t.Errorf("got %+v, want %+v", got, e)
		}
	}
}

func FuzzDecodeEnvelope(f *testing.F) {
	good := (&envelope{fence: 7, logical: time.Second, physical: time.Minute, payload: []byte("x")}).encode()
	f.Add(string(good))
	f.Add(string(good[:headLen+1]))
	f.Add(strings.Repeat("v", 60))
	f.Fuzz(func(t *testing.T, s string) {
		e, err := decodeEnvelope(s)
		if err != nil {
			return
		}
		if e.swr < 0 || e.sie < 0 || e.delta < 0 {
			t.Errorf("negative duration in %+v", e)
		}
	})
}
