package devserver

import (
	"bytes"
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

// logSize is how long a log is; 0 where there is none.
func logSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// logHas reports whether a log says something, in whatever case, behind its first bytes.
func logHas(path string, behind int64, what string) bool {
	raw, err := os.ReadFile(path)
	return err == nil && bytes.Contains(bytes.ToLower(raw[min(behind, int64(len(raw))):]), []byte(what))
}
