package grants

// Topic is the name of the topic, without a deployment prefix.
const Topic = "grants.v1"

// Wallet is one record of grants.v1.
type Wallet struct {
	// ID is WalletID of tenant and metric.
	ID string `json:"id"`
	// Version grows with every top-up of any wallet; set by the control plane.
	Version int64 `json:"version,omitempty"`
	// TenantID is the customer's id.
	TenantID string `json:"tenantId"`
	Metric   string `json:"metric"`
	// Granted is the sum of all grants, in units, up to 2^53. It only grows.
	Granted int64 `json:"granted"`
}

// WalletID names a wallet: tenant/metric. Neither part can hold a slash.
func WalletID(tenant, metric string) string { return tenant + "/" + metric }
