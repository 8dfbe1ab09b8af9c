package devserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// reserved are the ports this process keeps for itself.
var reserved reservations

// reservations keeps the processes of one user from taking each other's ports, also those of servers that are down for
// the moment. A port is a byte of a file that all share; who has it locked has the port. The kernel drops the locks of a
// process that ends, in whatever way.
type reservations struct {
	mu   sync.Mutex
	file *os.File // stays open: closing it would drop the locks
	ours map[int]bool
}

// take reports whether the port is this process's from now on; it is not where anybody has it, this process included.
func (r *reservations) take(port int) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ours[port] {
		return false, nil
	}
	if r.file == nil {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("sluice-ports.%d", os.Geteuid()))
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return false, fmt.Errorf("open the file of reserved ports: %w", err)
		}
		r.file, r.ours = file, map[int]bool{}
	}
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1}
	err := syscall.FcntlFlock(r.file.Fd(), syscall.F_SETLK, &lock)
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("lock %s: %w", r.file.Name(), err)
	}
	r.ours[port] = true
	return true, nil
}
