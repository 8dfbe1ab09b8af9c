package ticket

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func writeKeys(t *testing.T, path string, age time.Duration, keys ...Key) {
	t.Helper()
	text := ""
	for _, k := range keys {
		text += k.ID + " " + base64.StdEncoding.EncodeToString(k.Secret) + "\n"
	}
	write(t, path, text, age)
}

// write gives each file a time of its own, whatever the disk's clock can tell.
func write(t *testing.T, path, text string, age time.Duration) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at := noon.Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestKeysTurnWithTheirFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	writeKeys(t, path, 5*time.Hour, key("old", 1))
	synctest.Test(t, func(t *testing.T) {
		f, err := OpenFile(path, time.Second, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()
		look := func() {
			<-time.After(time.Second) // of the bubble: no time passes
			synctest.Wait()
		}
		old := mustSign(t, f.Keys(), portal())
		verify := func(text string) error {
			_, err := f.Keys().Verify(text, Check{Purpose: "portal", Now: noon})
			return err
		}
		writeKeys(t, path, 4*time.Hour, key("new", 2), key("old", 1))
		look()
		fresh := mustSign(t, f.Keys(), portal())
		if err := errors.Join(verify(old), verify(fresh)); err != nil {
			t.Fatal(err)
		}
		// Half a file changes nothing.
		write(t, path, "new AAAA", 3*time.Hour)
		look()
		if err := errors.Join(verify(old), verify(fresh)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		look()
		if err := verify(fresh); err != nil {
			t.Fatal(err)
		}
		writeKeys(t, path, 2*time.Hour, key("new", 2))
		look()
		if err := verify(old); !errors.Is(err, ErrUnknownKey) {
			t.Fatalf("a dropped key's ticket: %v", err)
		}
		if err := verify(fresh); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

func TestOpenFileSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	write(t, empty, "# none\n", 0)
	for _, path := range []string{filepath.Join(dir, "missing"), empty} {
		if _, err := OpenFile(path, 0, nil); err == nil {
			t.Errorf("%s is taken", path)
		}
	}
}
