package house_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-platform/sluice/libs/rule"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The rules that the README shows are ones that the control plane takes.
func TestReadmeRulesAreValid(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, block := range yamlBlock.FindAllStringSubmatch(read(t, "README.md"), -1) {
		var generic any
		if err := yaml.Unmarshal([]byte(block[1]), &generic); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(generic)
		if err != nil {
			t.Fatal(err)
		}
		var all []rules.Rule
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			checked++
			for _, e := range rule.Validate(r) {
				t.Errorf("rule %s of the README: %s: %s", r.ID, e.Field, e.Message)
			}
		}
	}
	if checked == 0 {
		t.Fatal("the README shows no rule")
	}
}
