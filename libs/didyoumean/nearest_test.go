package didyoumean_test

import (
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/didyoumean"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"id", "subject", "scope", "metric", "limit", "onStoreLoss", "onMissing", "window", "burst"}
	for name, want := range map[string]string{
		"idd": "id", "ID": "id", "subjekt": "subject", "metrics": "metric", "windw": "window", "Limit": "limit",
		"on_store_loss": "onStoreLoss", "onstoreloss": "onStoreLoss", "onMising": "onMissing",
		"colour": "", "x": "", "": "", "prefix": "", strings.Repeat("window", 30): "",
	} {
		if got := didyoumean.Nearest(name, known); got != want {
			t.Errorf("%q is near %q, want %q", name, got, want)
		}
	}
	if got := didyoumean.Nearest("id", nil); got != "" {
		t.Errorf("%q is near nothing", got)
	}
	if got := didyoumean.Nearest("ac", []string{"ab", "ad"}); got != "ab" {
		t.Errorf("of two that are as near %q is taken", got)
	}
}
