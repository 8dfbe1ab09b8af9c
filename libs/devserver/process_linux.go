package devserver

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// childAttr puts a child into a process group of its own and has the kernel signal it when its parent dies.
func childAttr(death syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death}
}

// descendants reads /proc once. Call it while the root is alive or not yet waited for: orphans are re-parented.
func descendants(root int) []int {
	parents := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		// "pid (comm) state ppid …": comm may hold spaces and brackets, so cut after the last one.
		fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		ppid, _ := strconv.Atoi(string(fields[1]))
		parents[ppid] = append(parents[ppid], pid)
	}
	var all []int
	for next := []int{root}; len(next) > 0; {
		var below []int
		for _, p := range next {
			below = append(below, parents[p]...)
		}
		all = append(all, below...)
		next = below
	}
	return all
}

// commandLine is the argument list of a process joined by spaces, empty when it is gone.
func commandLine(pid int) string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	return string(bytes.ReplaceAll(raw, []byte{0}, []byte{' '}))
}
