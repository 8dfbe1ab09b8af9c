package devserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A data folder outside the wanted one belongs to it by a mark that both hold:
// without one, deleting the wanted folder would leave the data for the next
// start to find.
const (
	markInside  = "OUTSIDE" // in the wanted folder: path of the outside one, id
	markOutside = "INSIDE"  // in the outside folder: path of the wanted one, id
)

// mark is the text of such a file.
type mark struct{ path, id string }

func readMark(dir, name string) (m mark, ok bool) {
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return mark{}, false
	}
	path, id, ok := strings.Cut(strings.TrimSuffix(string(raw), "\n"), "\n")
	return mark{path: path, id: id}, ok && id != ""
}

func (m mark) write(dir, name string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(m.path+"\n"+m.id+"\n"), 0o644)
}

// place is the wanted folder, made absolute, and where its data lies: there if
// the account can get there, else at a path that depends on the wanted one
// alone, so that the next run finds its data again.
func (a account) place(dir string) (want, at string, err error) {
	want, err = filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	if a.cred == nil || a.canReach(want) {
		return want, want, nil
	}
	sum := sha256.Sum256([]byte(want))
	return want, filepath.Join("/var/lib", "sluice-"+hex.EncodeToString(sum[:6])), nil
}

// settle makes the folder of the data, which this account owns. Outside data
// whose mark the wanted folder does not hold are discarded first, and told.
func (a account) settle(ctx context.Context, dir string, discarded func(dir string)) (string, error) {
	want, at, err := a.place(dir)
	if err != nil {
		return "", err
	}
	if at != want {
		if err := adopt(ctx, want, at, discarded); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	if a.cred == nil {
		return at, nil
	}
	return at, os.Chown(at, a.uid, a.gid)
}

// adopt makes an outside folder belong to the wanted one.
func adopt(ctx context.Context, want, at string, discarded func(dir string)) error {
	inside, marked := readMark(want, markInside)
	outside, known := readMark(at, markOutside)
	if marked && known && inside.id == outside.id {
		return nil
	}
	there, err := removeData(ctx, at)
	if err != nil {
		return fmt.Errorf("discard the data of a folder that is gone: %w", err)
	}
	if there && discarded != nil {
		discarded(at)
	}
	for _, dir := range []string{want, at} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	id := rand.Text()
	if err := (mark{path: want, id: id}).write(at, markOutside); err != nil {
		return err
	}
	return mark{path: at, id: id}.write(want, markInside)
}

// removeData removes a folder once no server runs on it any more.
func removeData(ctx context.Context, dir string) (there bool, err error) {
	if _, err := os.Lstat(dir); err != nil {
		return false, nil // nothing to remove
	}
	if err := clearStalePID(ctx, dir); err != nil {
		return true, err
	}
	return true, os.RemoveAll(dir)
}

// RemovePostgres deletes the data that StartPostgres keeps for dir, wherever
// they lie, and returns the folders it deleted. It waits for a server that is
// on its way out and fails where one goes on running.
func RemovePostgres(ctx context.Context, dir string) (deleted []string, err error) {
	owner, err := postgresOwner()
	if err != nil {
		return nil, fmt.Errorf("remove postgres data: %w", err)
	}
	want, at, err := owner.place(dir)
	if err != nil {
		return nil, fmt.Errorf("remove postgres data: %w", err)
	}
	places := []string{want}
	if at != want {
		places = append(places, at)
	} else if inside, ok := readMark(want, markInside); ok {
		// The wanted folder was closed to the account when the data were made.
		if outside, known := readMark(inside.path, markOutside); known && outside.id == inside.id {
			places = append(places, inside.path)
		}
	}
	for _, place := range places {
		there, err := removeData(ctx, place)
		if err != nil {
			return deleted, fmt.Errorf("remove postgres data: %w", err)
		}
		if there {
			deleted = append(deleted, place)
		}
	}
	return deleted, nil
}
