package redis

import _ "embed"

//go:embed struct.lua
var structLua string

//go:embed decide.lua
var decideLua string

// Decide is the text of decide.lua, for EVAL and EVALSHA, after that of
// struct.lua, which it needs where a server has no struct of its own.
var Decide = structLua + decideLua

//go:embed identity.lua
var identityLua string

//go:embed epoch.lua
var epochLua string

//go:embed heartbeat.lua
var heartbeatLua string

// Raise is the text of raise.lua, which raises quotas to what is known of them.
//
//go:embed raise.lua
var Raise string

//go:embed forfeit.lua
var forfeitLua string

//go:embed reservation.lua
var reservationLua string

// Place is the text of place.lua, which writes down an attempt to reserve where the
// tenant has a place for it.
//
//go:embed place.lua
var Place string

// Scripts that begin by telling which process runs them. Identity does nothing
// else; Epoch looks at epochs and sets them; by Heartbeat gateways say that they are
// there; Forfeit ends a grant of a wallet; Reservation tells how one stands.
var (
	Identity    = identityLua + "return (identity())\n"
	Epoch       = identityLua + epochLua
	Heartbeat   = identityLua + heartbeatLua
	Forfeit     = identityLua + forfeitLua
	Reservation = identityLua + reservationLua
)
