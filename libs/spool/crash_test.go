package spool

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// envCrashChild makes the test binary append to the named folder for ever.
const envCrashChild = "SLUICE_SPOOL_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envCrashChild); dir != "" {
		crashChild(dir)
	}
	os.Exit(m.Run())
}

// crashChild prints each number after Append returned.
func crashChild(dir string) {
	s, err := Open(Options{Dir: dir, SizeBytes: 64 << 20, Shards: 2})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	first, err := strconv.ParseUint(os.Getenv(envCrashChild+"_FROM"), 10, 64)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for n := first; ; n++ {
		s.Append(crashRecord(n))
		if _, err := fmt.Println(n); err != nil {
			os.Exit(0)
		}
	}
}

// crashRecord has a length and content that follow from its number.
func crashRecord(n uint64) []byte {
	b := make([]byte, 8+n*37%900)
	binary.LittleEndian.PutUint64(b, n)
	for i := 8; i < len(b); i++ {
		b[i] = byte(n + uint64(i))
	}
	return b
}

func TestNothingAppendedIsLostWhenTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var printed uint64 // numbers below were appended and said so
	for round := range 6 {
		printed = runAndKill(t, dir, printed, 300+round*211)
	}
	s, err := Open(Options{Dir: dir, SizeBytes: 64 << 20, Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // the test is over
	seen := map[uint64]bool{}
	for {
		records, _ := s.Next(100)
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			n := binary.LittleEndian.Uint64(r.Value)
			if string(r.Value) != string(crashRecord(n)) {
				t.Fatalf("record %d came back changed", n)
			}
			seen[n] = true
		}
	}
	for n := range printed {
		if !seen[n] {
			t.Fatalf("record %d of %d was appended and is gone", n, printed)
		}
	}
	if st := s.Stats(); st.Dropped != 0 {
		t.Fatalf("dropped %d of a spool that was never full", st.Dropped)
	}
}

// runAndKill kills a child in the middle of its appends after lines lines and
// returns the number after the last one it printed.
func runAndKill(t *testing.T, dir string, from uint64, lines int) uint64 {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe)
	child.Env = append(os.Environ(), envCrashChild+"="+dir, fmt.Sprintf("%s_FROM=%d", envCrashChild, from))
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	next, scan := from, bufio.NewScanner(out)
	for n := 0; scan.Scan(); n++ {
		v, err := strconv.ParseUint(scan.Text(), 10, 64)
		if err != nil {
			break // a line cut by the kill, or the child's error
		}
		next = v + 1
		if n == lines {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = child.Wait() // killed
	if next == from {
		t.Fatalf("child appended nothing; last line %q", scan.Text())
	}
	return next
}
