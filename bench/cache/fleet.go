package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// process is a running node.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string // what it says but for loads; closed at its end
	err   error       // of reading that; after lines is closed
}

// spawn starts a node; loads it tells of are counted by src. It is called by the main goroutine only, see init.
func spawn(ctx context.Context, n node, src *source) (*process, error) {
	spec, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p := &process{cmd: cmd, lines: make(chan string, 4)}
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
	go p.listen(stdout, src) // ends with the process
	return p, nil
}

func (p *process) listen(stdout io.Reader, src *source) {
	defer close(p.lines)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		switch line := lines.Text(); line {
		case sayBegin:
			src.begin()
		case sayEnd:
			src.end()
		default:
			p.lines <- line
		}
	}
	p.err = lines.Err()
}

func (p *process) line() (string, error) {
	line, ok := <-p.lines
	if !ok {
		return "", errors.Join(errors.New("a process ended early"), p.err)
	}
	return line, nil
}

func (p *process) expect(want string) error {
	line, err := p.line()
	if err == nil && line != want {
		err = fmt.Errorf("a process says %.100q, want %q", line, want)
	}
	return err
}

// kill ends the process if it has not ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	for range p.lines {
	}
	_ = p.cmd.Wait()
}

// fleet is the processes of one run.
type fleet []*process

func (f fleet) each(do func(*process) error) error {
	for _, p := range f {
		if err := do(p); err != nil {
			return err
		}
	}
	return nil
}

func (f fleet) kill() { _ = f.each(func(p *process) error { p.kill(); return nil }) }

// warm lets each read once, all at the same time.
func (f fleet) warm() error {
	if err := f.each(func(p *process) error { _, err := io.WriteString(p.stdin, "warm\n"); return err }); err != nil {
		return err
	}
	return f.each(func(p *process) error { return p.expect(sayWarmed) })
}

// read lets them read, and adds up how it went.
func (f fleet) read() (*tally, error) {
	if err := f.each(func(p *process) error { return p.stdin.Close() }); err != nil {
		return nil, err
	}
	sum := new(tally)
	err := f.each(func(p *process) error {
		line, err := p.line()
		if err != nil {
			return err
		}
		var t tally
		if err := json.NewDecoder(strings.NewReader(line)).Decode(&t); err != nil {
			return fmt.Errorf("read a process's result: %w", err)
		}
		sum.add(&t)
		return nil
	})
	return sum, err
}
