//go:build integration

package breaker_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-platform/sluice/libs/breaker"
)

// childEnv makes the test binary the process that is stopped: server's address,
// and whether it has a heartbeat.
const childEnv = "SLUICE_BREAKER_CHILD"

// slowEcho answers each byte after 20 ms, so that a call is nearly always under
// way when the process that made it is stopped.
func slowEcho(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with its connection
				defer conn.Close()
				b := make([]byte, 1)
				for {
					if _, err := io.ReadFull(conn, b); err != nil {
						return
					}
					<-time.After(20 * time.Millisecond)
					if _, err := conn.Write(b); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// A process that was stopped and goes on finds its calls timed out. That is
// nobody's silence, and its breaker stays closed; one without a heartbeat does
// not know better, and opens.
func TestStoppedProcessKeepsItsBreakerClosed(t *testing.T) {
	t.Parallel()
	if child := os.Getenv(childEnv); child != "" {
		callAround(t, child)
		return
	}
	for _, with := range []string{"heartbeat", "nothing"} {
		t.Run(with, func(t *testing.T) {
			t.Parallel()
			opened := stopAndGo(t, slowEcho(t)+" "+with, 8)
			if want := with == "nothing"; opened != want {
				t.Errorf("opened %t, want %t", opened, want)
			}
		})
	}
}

// stopAndGo stops a child some times and reports whether its breaker opened.
func stopAndGo(t *testing.T, child string, times int) (opened bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestStoppedProcessKeepsItsBreakerClosed$")
	cmd.Env = append(os.Environ(), childEnv+"="+child)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it calls until it is killed
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	for range times {
		for range 10 { // calls
			if !lines.Scan() {
				t.Fatalf("the child ended: %v", lines.Err())
			}
			opened = opened || strings.HasSuffix(lines.Text(), "open")
		}
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		<-time.After(300 * time.Millisecond)
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	return opened
}

// callAround calls the server again and again, and prints after each call
// whether the breaker is closed. It is killed by its parent.
func callAround(t *testing.T, child string) {
	addr, with, _ := strings.Cut(child, " ")
	o := breaker.Options{Silence: 50 * time.Millisecond}
	if with == "heartbeat" {
		o.Heartbeat = breaker.NewHeartbeat(0, nil).ThroughPoller()
		go func() { _ = o.Heartbeat.Run(t.Context()) }() // it ends with the process
	}
	b := breaker.New(o)
	var conn net.Conn
	for {
		if conn == nil {
			var err error
			if conn, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", addr); err != nil {
				return // the parent is gone
			}
		}
		began, one := time.Now(), []byte{1}
		_ = conn.SetDeadline(began.Add(time.Second / 10)) // a TCP connection takes it
		_, err := conn.Write(one)
		if err == nil {
			_, err = io.ReadFull(conn, one)
		}
		if err == nil {
			b.Answered(began)
		} else {
			b.Failed(began, true)
			_ = conn.Close()
			conn = nil
		}
		state := "closed"
		if !b.Closed() {
			state = "open"
		}
		fmt.Println(state)
	}
}
