package client

import "github.com/sluice-platform/sluice/services/sluice/client/internal/command"

// NoArgs takes no argument, and says so; FlagError says what would be right where a
// flag is wrong. The commands that are not the client's use them, too.
var (
	NoArgs    = command.NoArgs
	FlagError = command.FlagError
)
