package redis

import _ "embed"

// Decide is the text of decide.lua, for EVAL and EVALSHA.
//
//go:embed decide.lua
var Decide string
