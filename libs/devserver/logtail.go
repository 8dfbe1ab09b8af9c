package devserver

import (
	"os"
	"strings"
)

// logTail is the end of a server's log for an error message: a server that does not start says why there.
func logTail(path string) string {
	const lines = 15
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) == 0 {
		return "; its log " + path + " is empty"
	}
	all := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return "; the end of " + path + ":\n\t" + strings.Join(all, "\n\t")
}
