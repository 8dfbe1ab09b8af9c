//go:build unix && !linux

package devserver

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// childAttr puts a child into a process group of its own. There is no parent death signal here: after a kill -9 of the
// parent the servers live on, and the next start says that the port is taken.
func childAttr(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// descendants are the direct children, which is as deep as any of our servers goes.
func descendants(pid int) []int {
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	var all []int
	for _, field := range strings.Fields(string(out)) {
		if p, err := strconv.Atoi(field); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// alive says whether a process is there.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// commandLine is the command of a process, empty when it is gone.
func commandLine(pid int) string {
	out, _ := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return strings.TrimSpace(string(out))
}
