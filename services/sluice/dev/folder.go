package dev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Folder is the data folder, held by one process.
type Folder struct {
	// Path is absolute.
	Path string
	lock *os.File
}

// OpenFolder makes the folder and takes its lock, which the kernel gives back
// however this process ends.
func OpenFolder(path string) (*Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	name := filepath.Join(abs, "lock")
	lock, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(name)
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data folder %s is used by another sluice dev (process %s): stop it, or give another folder with --data", abs, strings.TrimSpace(string(owner)))
		}
		return nil, fmt.Errorf("lock the data folder %s: %w", abs, err)
	}
	// The number is for the error above only; the lock is what counts.
	if err := errors.Join(lock.Truncate(0), writeAt(lock, fmt.Sprintln(os.Getpid()))); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("data folder: %w", err)
	}
	return &Folder{Path: abs, lock: lock}, nil
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// Close gives the folder to whoever comes next.
func (f *Folder) Close() error { return f.lock.Close() }
