package events_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/deadletters"
	"github.com/sluice-platform/sluice/schemas/events/gateways"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/purges"
	"github.com/sluice-platform/sluice/schemas/events/quotaevents"
	"github.com/sluice-platform/sluice/schemas/events/rules"
	"github.com/sluice-platform/sluice/schemas/events/usage"
)

type contract struct {
	topic           string
	schema, example []byte
	value           any // pointer to the Go type
}

func contracts() []contract {
	return []contract{
		{rules.Topic, rules.Schema, rules.Example, new(rules.Rule)},
		{overrides.Topic, overrides.Schema, overrides.Example, new(overrides.Override)},
		{catalog.Topic, catalog.Schema, catalog.Example, new(catalog.Service)},
		{grants.Topic, grants.Schema, grants.Example, new(grants.Wallet)},
		{keys.Topic, keys.Schema, keys.Example, new(keys.Key)},
		{purges.Topic, purges.Schema, purges.Example, new(purges.Purge)},
		{usage.Topic, usage.Schema, usage.Example, new(usage.Event)},
		{gateways.Topic, gateways.Schema, gateways.Example, new(gateways.Beat)},
		{deadletters.Topic, deadletters.Schema, deadletters.Example, new(deadletters.Letter)},
		{quotaevents.Topic, quotaevents.Schema, quotaevents.Example, new(quotaevents.Reached)},
	}
}

// The example holds against the schema, and the Go type reads all of it and
// writes the same again: neither side knows a field the other does not.
func TestTypeSchemaAndExampleAgree(t *testing.T) {
	t.Parallel()
	for _, c := range contracts() {
		t.Run(c.topic, func(t *testing.T) {
			t.Parallel()
			schema := compile(t, c.schema)
			if err := schema.Validate(decode(t, c.example)); err != nil {
				t.Fatalf("example: %v", err)
			}
			strict := json.NewDecoder(bytes.NewReader(c.example))
			strict.DisallowUnknownFields()
			if err := strict.Decode(c.value); err != nil {
				t.Fatalf("example into Go type: %v", err)
			}
			again, err := json.Marshal(c.value)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(decode(t, again)); err != nil {
				t.Errorf("Go type written as JSON: %v", err)
			}
			if got, want := decode(t, again), decode(t, c.example); !reflect.DeepEqual(got, want) {
				t.Errorf("round trip:\n got %v\nwant %v", got, want)
			}
		})
	}
}

// Each JSON field of the Go type stands in the schema, so that a field added
// to one is added to the other.
func TestSchemaNamesEveryField(t *testing.T) {
	t.Parallel()
	for _, c := range contracts() {
		var schema struct {
			Properties map[string]any `json:"properties"`
		}
		if err := json.Unmarshal(c.schema, &schema); err != nil {
			t.Fatal(err)
		}
		typ := reflect.TypeOf(c.value).Elem()
		for i := range typ.NumField() {
			name, _, _ := bytes.Cut([]byte(typ.Field(i).Tag.Get("json")), []byte(","))
			if _, ok := schema.Properties[string(name)]; !ok {
				t.Errorf("%s: field %s is not in schema.json", c.topic, name)
			}
		}
	}
}

func compile(t *testing.T, raw []byte) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("schema.json", decode(t, raw)); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func decode(t *testing.T, raw []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
