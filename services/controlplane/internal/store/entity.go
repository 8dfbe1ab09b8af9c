package store

import (
	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/schemas/events/grants"
	"github.com/sluice-platform/sluice/schemas/events/keys"
	"github.com/sluice-platform/sluice/schemas/events/overrides"
	"github.com/sluice-platform/sluice/schemas/events/purges"
	"github.com/sluice-platform/sluice/schemas/events/rules"
)

// Entity is one kind of row: its name in the audit log, its table and the
// compacted topic that mirrors it, if one does. The names are constants of this
// package, never input, and so may be part of SQL.
type Entity struct {
	Kind, Table, Topic string
	// OneByOne: its writes wait for each other. It is for tables whose rows
	// share something unique besides the key: two who exchange it would wait
	// for each other's row, until Postgres after a second ends one of them.
	OneByOne bool
	// Owned: subscriptions write rows of it, which nobody else may change.
	Owned bool
	// Counted: versions are each row's own, 1, 2, 3, and not of the sequence.
	Counted bool
}

// The kinds of rows. Subscriptions write rows of Rules and Overrides, too.
var (
	Rules     = Entity{Kind: "rule", Table: "rules", Topic: rules.Topic, Owned: true}
	Overrides = Entity{Kind: "override", Table: "overrides", Topic: overrides.Topic, Owned: true}
	Services  = Entity{Kind: "service", Table: "catalog", Topic: catalog.Topic, OneByOne: true}
	Keys      = Entity{Kind: "key", Table: "api_keys", Topic: keys.Topic}
	Purges    = Entity{Kind: "purge", Table: "purges", Topic: purges.Topic}
	Customers = Entity{Kind: "customer", Table: "customers"}
	Plans     = Entity{Kind: "plan", Table: "plans", Counted: true}
	Wallets   = Entity{Kind: "wallet", Table: "wallets", Topic: grants.Topic}
	Webhooks  = Entity{Kind: "webhook", Table: "webhooks"}

	Subscriptions = Entity{Kind: "subscription", Table: "subscriptions"}
)
