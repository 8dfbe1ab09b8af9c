package redis

import _ "embed"

//go:embed struct.lua
var structLua string

//go:embed decide.lua
var decideLua string

// Decide is the text of decide.lua, for EVAL and EVALSHA, after that of
// struct.lua, which it needs where a server has no struct of its own.
var Decide = structLua + decideLua
