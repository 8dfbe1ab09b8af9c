// Package postgres embeds the numbered migrations, a folder and a version
// table (goose_<room>) a room. libs/migrate applies them. A migration works
// before and after the code that needs it is rolled out.
package postgres
