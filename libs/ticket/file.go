package ticket

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// DefaultEvery is how often a File is looked at.
const DefaultEvery = 10 * time.Second

// File keeps Keys as a file says, also when it is changed: to turn keys, write
// the new one first and the old one behind it, and drop the old one when the
// last ticket it signed has expired.
type File struct {
	path  string
	every time.Duration
	log   *slog.Logger
	keys  *Keys
	seen  stamp
}

// stamp changes when a file does.
type stamp struct {
	modified time.Time
	size     int64
}

// OpenFile reads the keys; an error says what is wrong with which line. every is
// how often Run looks again, 0 is DefaultEvery; a nil log is slog.Default.
func OpenFile(path string, every time.Duration, log *slog.Logger) (*File, error) {
	if every <= 0 {
		every = DefaultEvery
	}
	if log == nil {
		log = slog.Default()
	}
	f := &File{path: path, every: every, log: log, keys: new(Keys)}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// Keys are those of the file, as of the last look.
func (f *File) Keys() *Keys { return f.keys }

// Run looks at the file until ctx is cancelled, then returns nil. A file that
// is missing or wrong changes nothing: the keys of before stay in force, and
// the log says why. Run may run once.
func (f *File) Run(ctx context.Context) error {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := f.reread()
		if err == nil {
			said = ""
			continue
		}
		if said != err.Error() { // once, not at every look
			said = err.Error()
			f.log.ErrorContext(ctx, "ticket keys cannot be read again; those of before stay in force", "error", err)
		}
	}
}

// reread reads the file if it changed. A change is remembered only when it was
// read whole, so that a file caught half-written is read again.
func (f *File) reread() error {
	now, err := stampOf(f.path)
	if err != nil || now == f.seen {
		return err
	}
	if err := f.read(); err != nil {
		return err
	}
	f.log.Info("ticket keys read again", "signing", f.keys.signing().ID)
	return nil
}

func (f *File) read() error {
	now, err := stampOf(f.path)
	if err != nil {
		return err
	}
	keys, err := ReadKeysFile(f.path)
	if err != nil {
		return err
	}
	if err := f.keys.Replace(keys...); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.seen = now
	return nil
}

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, fmt.Errorf("read ticket keys: %w", err)
	}
	return stamp{modified: info.ModTime(), size: info.Size()}, nil
}
