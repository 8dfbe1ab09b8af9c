package chart

// Files draws every picture: name → content.
func Files() map[string][]byte {
	return map[string][]byte{
		"xfetch-probability.svg": probability(),
		"xfetch-loads.svg":       loads(),
		"method-fresh.svg":       methods("which method, where values may not be stale at all: ttl 60 s, beta 1", 0),
		"method-stale.svg":       methods("which method, where values may be stale for 1 s: ttl 60 s, beta 1", tolerated),
	}
}
