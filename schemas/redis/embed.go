package redis

import _ "embed"

//go:embed struct.lua
var structLua string

//go:embed decide.lua
var decideLua string

// Decide is the text of decide.lua, for EVAL and EVALSHA, after that of
// struct.lua, which it needs where a server has no struct of its own.
var Decide = structLua + decideLua

//go:embed process.lua
var processLua string

//go:embed marker.lua
var markerLua string

//go:embed lineage.lua
var lineageLua string

//go:embed attend.lua
var attendLua string

// Floors is the text of floors.lua, which raises quotas to what is known of them.
//
//go:embed floors.lua
var Floors string

// TakeOut is the text of takeout.lua, which takes out of a quota, in a restore, what
// lost calls had charged.
//
//go:embed takeout.lua
var TakeOut string

//go:embed forfeit.lua
var forfeitLua string

//go:embed reservation.lua
var reservationLua string

// Place is the text of place.lua, which writes down an attempt to reserve where the
// tenant has a place for it.
//
//go:embed place.lua
var Place string

// Marker is the text of marker.lua, by which markers are looked at and set, and
// Lineage that of lineage.lua, which also tells whose data they are beside, Attend
// of attend.lua, by which gateways say that they are there, Forfeit of forfeit.lua,
// which ends a grant of a wallet, Reservation of reservation.lua, which tells how
// one stands. They begin by telling which process runs them.
var (
	Marker  = processLua + markerLua
	Lineage = processLua + "local function marker()\n" + markerLua + "end\n" + lineageLua
	Attend  = processLua + attendLua
	Forfeit = processLua + forfeitLua

	Reservation = processLua + reservationLua
)
