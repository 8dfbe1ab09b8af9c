package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// damageError marks a file that cannot be used and is moved aside.
type damageError struct{ err error }

func (e damageError) Error() string { return e.err.Error() }
func (e damageError) Unwrap() error { return e.err }

func damaged(err error) error { return damageError{err} }

// open builds the spool in a locked folder; on an error the caller closes f.
func open(o Options, f *files) (*Spool, error) {
	path, want := filepath.Join(o.Dir, ringName), geometryFor(o.SizeBytes, o.Shards)
	shards, err := openRing(o, f, path, want)
	if err != nil {
		return nil, fmt.Errorf("open spool %s: %w", path, err)
	}
	s := &Spool{shards: shards, files: f, wake: make(chan struct{}, 1)}
	if err := carryOver(o, s); err != nil {
		return nil, fmt.Errorf("carry spool over after a resize: %w", err)
	}
	return s, nil
}

// openRing opens the file, or makes one where there is none, it is damaged, or
// has another geometry than asked for. The latter waits under resizeName.
func openRing(o Options, f *files, path string, want geometry) ([]*shard, error) {
	data, got, err := mapFile(path)
	var damage damageError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return createRing(o, f, path, want)
	case errors.As(err, &damage):
		return moveAside(o, f, path, want, err)
	case err != nil:
		return nil, err
	}
	f.data = data
	if got != want {
		return resize(o, f, path, want)
	}
	shards := got.cut(data)
	if err := recoverAll(o.Log, path, shards); err != nil {
		return moveAside(o, f, path, want, err)
	}
	return shards, nil
}

func recoverAll(log *slog.Logger, path string, shards []*shard) error {
	var lost damage
	for i, s := range shards {
		d, err := s.recover()
		if err != nil {
			return damaged(fmt.Errorf("ring %d: %w", i, err))
		}
		lost.bytes += d.bytes
		lost.records += d.records
	}
	if lost.bytes > 0 {
		log.Error("spool has a damaged stretch; its records are lost and counted as dropped",
			"file", path, "bytes", lost.bytes, "records", lost.records)
	}
	return nil
}

func createRing(o Options, f *files, path string, g geometry) ([]*shard, error) {
	if err := create(path, g); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	data, got, err := mapFile(path)
	if err != nil {
		return nil, err
	}
	f.data = data
	shards := got.cut(data)
	return shards, recoverAll(o.Log, path, shards)
}

func moveAside(o Options, f *files, path string, g geometry, cause error) ([]*shard, error) {
	if err := f.unmap(); err != nil {
		return nil, err
	}
	if err := renameDamaged(o, path, cause); err != nil {
		return nil, err
	}
	return createRing(o, f, path, g)
}

func renameDamaged(o Options, path string, cause error) error {
	aside := filepath.Join(o.Dir, fmt.Sprintf("%s.corrupt-%d", ringName, o.Now().UnixNano()))
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("move the damaged file aside: %w", err)
	}
	o.Log.Error("spool file is damaged and was moved aside; records in it are not shipped",
		"file", path, "movedTo", aside, "cause", cause)
	return nil
}

// resize sets the present file aside for carryOver. An older one that still
// waits there comes first, as the present file was made to take it.
func resize(o Options, f *files, path string, want geometry) ([]*shard, error) {
	if err := f.unmap(); err != nil {
		return nil, err
	}
	old := filepath.Join(f.dir, resizeName)
	for n := 0; ; n++ {
		target := old
		if n > 0 {
			target = fmt.Sprintf("%s.%d", old, n)
		}
		if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(path, target); err != nil {
				return nil, err
			}
			return createRing(o, f, path, want)
		}
	}
}

// carryOver appends what waits in set-aside files and deletes them. A kill in
// between repeats records, which readers of a spool must bear anyway.
func carryOver(o Options, s *Spool) error {
	olds, err := filepath.Glob(filepath.Join(o.Dir, resizeName+"*"))
	if err != nil {
		return err
	}
	for _, path := range olds {
		err := carryFile(o, s, path)
		if damage := (damageError{}); errors.As(err, &damage) {
			err = renameDamaged(o, path, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func carryFile(o Options, s *Spool, path string) error {
	data, g, err := mapFile(path)
	if err != nil {
		return err
	}
	old := &Spool{shards: g.cut(data), files: &files{data: data}}
	if err := recoverAll(o.Log, path, old.shards); err != nil {
		return errors.Join(err, old.Close())
	}
	moved := 0
	for {
		records, _ := old.Next(1024)
		if len(records) == 0 {
			break
		}
		for _, r := range records {
			s.AppendKeyed(string(r.Key), r.Value)
		}
		moved += len(records)
	}
	dropped := old.Stats().Dropped
	if err := errors.Join(old.Close(), os.Remove(path)); err != nil {
		return err
	}
	s.shards[0].addDropped(dropped)
	o.Log.Info("spool was resized", "file", path, "recordsCarriedOver", moved)
	return nil
}
