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
	children := map[int][]int{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		pid, _ := strconv.Atoi(filepath.Base(folder))
		if _, parent, ok := processStat(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	var all []int
	for next := []int{root}; len(next) > 0; {
		var below []int
		for _, p := range next {
			below = append(below, children[p]...)
		}
		all = append(all, below...)
		next = below
	}
	return all
}

// processStat reads a process's state letter and parent; ok is false when it is gone.
func processStat(pid int) (state byte, parent int, ok bool) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, 0, false
	}
	// "pid (comm) state ppid …": comm may hold spaces and brackets, so cut after the last one.
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return fields[0][0], parent, err == nil
}

// alive says whether a process is there and no zombie: an orphan's new parent may be slow to collect it.
func alive(pid int) bool {
	state, _, ok := processStat(pid)
	return ok && state != 'Z' && state != 'X'
}

// commandLine is the argument list of a process joined by spaces, empty when it is gone.
func commandLine(pid int) string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	return string(bytes.ReplaceAll(raw, []byte{0}, []byte{' '}))
}
