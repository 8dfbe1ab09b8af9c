package elasticsearch

import _ "embed"

// UsageTemplate is the composable index template (JSON) of usage events.
//
//go:embed usage-template.json
var UsageTemplate []byte
