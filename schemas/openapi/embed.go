package openapi

import _ "embed"

// ControlPlane is the OpenAPI 3.1 document of the control plane, as YAML.
//
//go:embed controlplane.yaml
var ControlPlane []byte
