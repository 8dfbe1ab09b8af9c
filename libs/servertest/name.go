package servertest

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"testing"
	"time"
)

// cleanupLimit bounds each cleanup: a server that hangs must not hang the test run.
const cleanupLimit = 2 * time.Minute

// unique is a name no other test has, in this process or another: letters and digits, legal everywhere.
func unique() string {
	var raw [6]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	return "t" + hex.EncodeToString(raw[:])
}

// mustEnv is the value of a variable that names a shared server.
func mustEnv(t testing.TB, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("no server for this test: run make test, or set %s", name)
	}
	return value
}
