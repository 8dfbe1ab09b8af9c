package dev

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/devserver"
)

func TestCheckPortsNamesEveryTakenPort(t *testing.T) {
	t.Parallel()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	first, second := listen(), listen()
	free := Port{Owner: "demo", Addr: "127.0.0.1:0", Change: "--set demo.listen=…"}
	err := CheckPorts([]Port{
		free,
		{Owner: "gateway", Addr: first.Addr().String(), Change: "--set gateway.listen=…"},
		{Owner: "control plane", Addr: second.Addr().String(), Change: "--set controlplane.listen=…"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"gateway cannot listen on " + first.Addr().String() + ": address already in use (choose another with --set gateway.listen=…)",
		"control plane cannot listen on " + second.Addr().String(),
		"--port-offset",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "demo") {
		t.Errorf("a free port is in the error:\n%v", err)
	}
	if err := CheckPorts([]Port{free}); err != nil {
		t.Error(err)
	}
}

func TestCheckPortsNamesAnAddressGivenTwice(t *testing.T) {
	t.Parallel()
	port, err := devserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	err = CheckPorts([]Port{{Owner: "gateway", Addr: addr, Change: "-"}, {Owner: "demo service", Addr: addr, Change: "--set demo.listen=…"}})
	if err == nil || !strings.Contains(err.Error(), "demo service cannot listen on "+addr+": gateway does") {
		t.Errorf("error %v", err)
	}
}

func TestPortsOfADyingServerAreWaitedFor(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	checked := make(chan error, 1)
	go func() { checked <- CheckPorts([]Port{{Owner: "postgres", Addr: l.Addr().String(), Patient: true}}) }()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-checked; err != nil {
		t.Error(err)
	}
}
