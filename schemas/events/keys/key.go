package keys

import "time"

// Topic is the name of the topic, without a deployment prefix.
const Topic = "keys.v1"

// Statuses. A gateway refuses any status but active with 403.
const (
	StatusActive  = "active"
	StatusBlocked = "blocked"
	StatusRevoked = "revoked"
)

// Key is one record of keys.v1; its record key is ID.
type Key struct {
	// ID names the key in rules (subject apiKey) and REST.
	ID string `json:"id"`
	// Version grows with every write; set by the control plane.
	Version int64 `json:"version,omitempty"`
	// SHA256 is the hash of the whole key, 64 lower-case hexadecimal digits.
	SHA256 string `json:"sha256"`
	// TenantID, UserID and ApplicationID are the identity the key stands for;
	// tenant always, user and application where the key is bound to one.
	TenantID      string `json:"tenantId"`
	UserID        string `json:"userId,omitempty"`
	ApplicationID string `json:"applicationId,omitempty"`
	Name          string `json:"name,omitempty"`
	Status        string `json:"status"`
	// ExpiresAt ends the key; nil is never.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}
