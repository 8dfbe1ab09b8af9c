//go:build soak

package journal

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
)

// envFullDisk has the test binary find a disk of its own to fill.
const envFullDisk = "SLUICE_SETTLE_FULL_DISK"

// A real disk without a byte left, in a process with mounts of its own: a gateway
// starts on it and settles, once, what the one before left. A first start says
// where it needs how much, and leaves nothing behind. It is no test of the quick
// set, since not every machine lets a user mount something.
func TestAGatewayStartsOnAFullDisk(t *testing.T) {
	if dir := os.Getenv(envFullDisk); dir != "" {
		if err := syscall.Mount("full", dir, "tmpfs", 0, "size=4m"); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) { startOnFullDisk(t, dir) })
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestAGatewayStartsOnAFullDisk$", "-test.v") //nolint:gosec // itself
	c.Env = append(os.Environ(), envFullDisk+"="+t.TempDir())
	ids := func(id int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: id, Size: 1}} }
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: ids(os.Getuid()), GidMappings: ids(os.Getgid()),
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func startOnFullDisk(t *testing.T, disk string) {
	l, dir := newLedger(), filepath.Join(disk, "settle")
	s := open(t, dir, l, nil)
	s.Append(noon, ofA(1))
	l.charge(s, ofA(10)) // in flight
	s.GiveBack(l.charge(s, ofA(100)), noon, ofA(-100))
	s.End(l.charge(s, ofA(1000)))
	killed(t, s)
	first, half := filepath.Join(disk, "first"), filepath.Join(disk, "half")
	killed(t, open(t, half, l, nil))
	if err := os.Remove(filepath.Join(half, stateName)); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(disk, "full"))

	for i := range int64(3) {
		s := open(t, dir, l, nil)
		s.Append(noon, ofA(10_000))
		settle(t, s)
		l.want(t, map[string]int64{julyOfA: 1001 + 10_000*(i+1)})
	}

	fill(t, filepath.Join(disk, "full again")) // slots that were ended have left some
	for _, dir := range []string{first, half} {
		_, err := Open(Options{Dir: dir, SizeBytes: 1 << 20, Gateway: "gw", Store: l})
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "bytes left") {
			t.Errorf("a first start: %v", err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, "*.tmp")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// fill writes until the disk takes not one byte more.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 64<<10); len(b) > 0; {
		if _, err = f.Write(b); err != nil {
			b = b[:len(b)/2]
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
