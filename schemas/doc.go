// Package schemas is the bottom of the house: the versioned contracts that
// rooms share. It holds nouns only (types, JSON Schemas, migrations, the
// script, templates), embedded where a program needs them, and imports
// nothing else of ours.
package schemas
