package grants

import _ "embed"

// Schema is the JSON Schema (draft 2020-12) of a record's value.
//
//go:embed schema.json
var Schema []byte

// Example is a value that Schema accepts.
//
//go:embed example.json
var Example []byte
