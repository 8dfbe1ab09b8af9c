package state

import "time"

// Values are what the script said of a counter: its state A, B, C after the
// decision (decide.lua), and Redis's clock, µs.
type Values struct{ Now, A, B, C int64 }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
