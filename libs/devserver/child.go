package devserver

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// child is one process of a server. done is closed after it was waited for; err is readable from then on.
type child struct {
	pid  int
	done chan struct{}
	err  error
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// fork starts the process from a thread that lives exactly as long as the child: the kernel sends the parent death
// signal when the forking thread ends, and the Go runtime ends idle threads as it likes.
func (s *server) fork() (*child, error) {
	log, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(s.spec.program, s.spec.args...)
	cmd.Dir = s.spec.dir
	cmd.Env = append(os.Environ(), s.spec.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttr(s.spec.deathSignal)
	cmd.SysProcAttr.Credential = s.spec.cred

	run := &child{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(run.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			run.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			run.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return run, nil
}

// reap kills what is left of the process and its children and waits for it. Callers hold mu.
func (s *server) reap(run *child) {
	if !run.ended() {
		// Stopped first: a process that is killed before its children are listed leaves orphans nobody can find.
		_ = syscall.Kill(-run.pid, syscall.SIGSTOP)
		family := descendants(run.pid)
		_ = syscall.Kill(-run.pid, syscall.SIGKILL)
		for _, p := range family {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
		<-run.done
		awaitGone(family)
	}
	s.run = nil
}

// awaitGone waits for killed processes that are not our own children; Postgres will not start while one of them is
// still attached to its shared memory. The bound is for a process the kernel cannot end (a hung disk).
func awaitGone(pids []int) {
	deadline := time.Now().Add(2 * time.Second)
	for _, p := range pids {
		for alive(p) && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// signalTree signals a process, its group and all its descendants. The group alone is not enough: each Postgres
// backend leads a group of its own. The parent comes first, so that a stopped one forks no more.
func signalTree(pid int, sig syscall.Signal) {
	_ = syscall.Kill(-pid, sig)
	for _, p := range descendants(pid) {
		_ = syscall.Kill(p, sig)
	}
}
