package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Process is one that Start started.
type Process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string // what it says and nobody has heard; closed at its end
	err   error       // of reading that; after lines is closed
}

// Start starts a process with a task. Each line it says is offered to heard, which may be nil and returns true for those
// it takes; the others wait for Line, four at most. Only the main goroutine may call it.
func Start(ctx context.Context, task any, heard func(line string) bool) (*Process, error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), taskEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &Process{cmd: cmd, lines: make(chan string, 4)}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a process: %w", err)
	}
	go p.listen(stdout, heard) // ends with the process
	return p, nil
}

func (p *Process) listen(stdout io.Reader, heard func(string) bool) {
	defer close(p.lines)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := lines.Text(); heard == nil || !heard(line) {
			p.lines <- line
		}
	}
	p.err = lines.Err()
}

// Line waits for what it says next.
func (p *Process) Line() (string, error) {
	line, ok := <-p.lines
	if !ok {
		return "", errors.Join(errors.New("a process ended early"), p.err)
	}
	return line, nil
}

// Kill ends the process if it has not ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	for range p.lines {
	}
	_ = p.cmd.Wait()
}

// Fleet is the processes of one run.
type Fleet []*Process

func (f Fleet) each(do func(*Process) error) error {
	for _, p := range f {
		if err := do(p); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends those that have not ended.
func (f Fleet) Kill() { _ = f.each(func(p *Process) error { p.Kill(); return nil }) }

// Expect waits until each says the line.
func (f Fleet) Expect(want string) error {
	return f.each(func(p *Process) error {
		line, err := p.Line()
		if err == nil && line != want {
			err = fmt.Errorf("a process says %.100q, want %q", line, want)
		}
		return err
	})
}

// Tell says a line to each, all at once.
func (f Fleet) Tell(line string) error {
	return f.each(func(p *Process) error { _, err := io.WriteString(p.stdin, line+"\n"); return err })
}

// Hang ends each one's standard input.
func (f Fleet) Hang() error { return f.each(func(p *Process) error { return p.stdin.Close() }) }

// Reports waits for what each Reports, and hands it to add.
func Reports[T any](f Fleet, add func(*T)) error {
	return f.each(func(p *Process) error {
		line, err := p.Line()
		if err != nil {
			return err
		}
		v := new(T)
		if err := json.Unmarshal([]byte(line), v); err != nil {
			return fmt.Errorf("read a process's report: %w", err)
		}
		add(v)
		return nil
	})
}
