package billing

import (
	"testing"
	"time"
)

func TestConfigIsCheckedByName(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Check(); err != nil {
		t.Error(err)
	}
	if err := (Config{Grace: time.Hour}).Check(); err == nil {
		t.Error("a job without a pause is taken")
	}
	for grace, says := range map[time.Duration]string{
		-time.Hour:         "-1h0m0s",
		0:                  "0s",
		72:                 "72ns", // somebody meant hours
		time.Minute - 1:    "59.999999999s",
		time.Minute:        "",
		2160 * time.Hour:   "",
		2160*time.Hour + 1: "2160h0m0.000000001s",
	} {
		got := ""
		if err := (Config{Every: time.Minute, Grace: grace}).Check(); err != nil {
			got = err.Error()
		}
		want := ""
		if says != "" {
			want = "billing.grace must be 1m to 2160h, a duration with its unit; it is " + says
		}
		if got != want {
			t.Errorf("%s: %q, want %q", grace, got, want)
		}
	}
}
