// Package config is the configuration of the one binary: a struct composed of
// the rooms' own, and the layers that fill it.
//
// # Model
//
// Each leaf of the struct is a Key: its path (gateway.spool.sizeBytes), the
// environment variable derived from it (SLUICE_GATEWAY_SPOOL_SIZE_BYTES), type,
// default and documentation, all read by reflection, so that the loader, the
// printed configuration and the generated reference cannot differ.
//
//	defaults ← a mode's own ← YAML file ← environment ← flags
//
// # Invariants
//
//   - A key or SLUICE_ variable nobody knows is an error that names the nearest
//     known one: a misspelt limit must not silently be the default.
//   - All errors are reported at once, each with its key and its source.
//   - Printing masks secrets, and the userinfo of any URL; there is no way to
//     print them. Of postgres.url the password alone is masked.
//   - What loads, runs: the rooms are asked about their sections here already.
//
// Fed by the command line; feeds the table of modules and the generator of
// docs/reference.
package config
