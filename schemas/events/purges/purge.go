package purges

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Topic is the name of the topic, without a deployment prefix.
const Topic = "purges.v1"

// No cache keeps an answer for longer than MaxLife after it was loaded or
// confirmed; a purge is kept for Retention, and may then be forgotten.
const (
	MaxLife   = 7 * 24 * time.Hour
	Retention = 8 * 24 * time.Hour
)

// Purge is one record of purges.v1; its key is ID. Exactly one of URL, Prefix,
// Tag and All says what of the service is purged.
type Purge struct {
	// ID follows from the target, see Target.
	ID string `json:"id"`
	// Version grows with every write; set by the control plane.
	Version int64 `json:"version,omitempty"`
	// Service is the service's name in the catalog.
	Service string `json:"service"`
	// URL is a path as clients ask for it, such as /shop/item?id=4711, of every
	// host. With a query the answers that it tells apart, without one all of
	// the path.
	URL string `json:"url,omitempty"`
	// Prefix is the beginning of paths, such as /shop/.
	Prefix string `json:"prefix,omitempty"`
	// Tag is one that the service gave its answers.
	Tag string `json:"tag,omitempty"`
	// All is every answer of the service.
	All bool `json:"all,omitempty"`
	// At is when the purge was written, UTC; for people.
	At time.Time `json:"at"`
}

// Target is the ID of a purge of the same target.
func (p Purge) Target() string {
	kind, value := "all", ""
	switch {
	case p.URL != "":
		kind, value = "url", p.URL
	case p.Prefix != "":
		kind, value = "prefix", p.Prefix
	case p.Tag != "":
		kind, value = "tag", p.Tag
	}
	sum := sha256.Sum256([]byte(p.Service + "\x00" + kind + "\x00" + value))
	return "purge_" + hex.EncodeToString(sum[:16])
}
