package elasticsearch

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/usage"
)

type properties map[string]struct {
	Type       string     `json:"type"`
	Properties properties `json:"properties"`
}

// A field that the template does not know would be kept and never found.
func TestTemplateKnowsEveryFieldOfAnEvent(t *testing.T) {
	t.Parallel()
	var template struct {
		Template struct {
			Mappings struct {
				Dynamic    bool       `json:"dynamic"`
				Properties properties `json:"properties"`
			} `json:"mappings"`
		} `json:"template"`
	}
	if err := json.Unmarshal(UsageTemplate, &template); err != nil {
		t.Fatal(err)
	}
	mappings := template.Template.Mappings
	if mappings.Dynamic {
		t.Error("unknown fields of newer events would become fields of the index")
	}
	compare(t, mappings.Properties, reflect.TypeFor[usage.Event]())
	compare(t, mappings.Properties["charges"].Properties, reflect.TypeFor[usage.Charge]())
	for field, want := range map[string]string{"ts": "date", "latencyMs": "float", "statusCode": "short", "cost": "long", "id": "keyword"} {
		if got := mappings.Properties[field].Type; got != want {
			t.Errorf("%s is %s, not %s", field, got, want)
		}
	}
}

func compare(t *testing.T, got properties, event reflect.Type) {
	t.Helper()
	var want []string
	for i := range event.NumField() {
		name, _, _ := strings.Cut(event.Field(i).Tag.Get("json"), ",")
		want = append(want, name)
	}
	slices.Sort(want)
	if have := slices.Sorted(maps.Keys(got)); !slices.Equal(have, want) {
		t.Errorf("template has %v\n%s has %v", have, event, want)
	}
}
