package redisstore

import (
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// A process that stood still until after its call's time was up, and sends only
// then, waits for the answer all the same; one whose time is up in time does not.
func TestAnswerToACallThatWasSentLateIsRead(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	raw, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := twice{raw, new(atomic.Int64)}
	defer c.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	b := make([]byte, 1)
	for range 10 { // where this machine is slow the answer comes too late
		if err := c.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		go func() {
			<-time.After(20 * time.Millisecond) // longer than lastLook
			_, _ = server.Write([]byte("1"))
		}()
		if _, err = c.Read(b); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; { // what came too late is read first
		_, err = c.Read(b)
	}
	if !isTimeout(err) {
		t.Errorf("error %v, want that of a time-out", err)
	}
}
