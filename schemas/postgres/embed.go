package postgres

import "embed"

// FS holds <room>/<number>_<name>.sql.
//
//go:embed */*.sql
var FS embed.FS
