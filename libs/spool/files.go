package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	pageBytes    = 4096
	maxShards    = 64
	maxRingBytes = 1 << 31
	magic        = "SLUICESP"
	version      = 1

	ringName   = "spool.ring"
	resizeName = "spool.ring.old" // holds what a resize has yet to carry over
	lockName   = "spool.lock"
)

// geometry is how a file is cut: a page for itself, a page a ring for its
// head, then the rings.
type geometry struct {
	shards    int
	ringBytes int64
}

func geometryFor(size int64, shards int) geometry {
	ring := (size - int64(1+shards)*pageBytes) / int64(shards)
	return geometry{shards: shards, ringBytes: ring &^ (pageBytes - 1)}
}

func (g geometry) fileBytes() int64 {
	return int64(1+g.shards)*pageBytes + int64(g.shards)*g.ringBytes
}

func (g geometry) encode() []byte {
	b := make([]byte, pageBytes)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], uint32(g.shards))
	binary.LittleEndian.PutUint64(b[16:], uint64(g.ringBytes))
	binary.LittleEndian.PutUint32(b[24:], crc32.Checksum(b[:24], castagnoli))
	return b
}

func decodeGeometry(b []byte) (geometry, error) {
	if string(b[:8]) != magic || binary.LittleEndian.Uint32(b[24:]) != crc32.Checksum(b[:24], castagnoli) {
		return geometry{}, errors.New("header is damaged")
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return geometry{}, fmt.Errorf("format version %d is unknown", v)
	}
	g := geometry{
		shards:    int(binary.LittleEndian.Uint32(b[12:])),
		ringBytes: int64(binary.LittleEndian.Uint64(b[16:])),
	}
	return g, nil
}

// files is what an open spool holds of the operating system.
type files struct {
	dir  string
	lock *os.File
	data []byte
}

// lockDir takes the folder for this process. The lock goes with the process,
// however it ends.
func lockDir(dir string) (*files, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open spool lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 32)) // only for the message
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s, process %s", ErrLocked, dir, holder)
		}
		return nil, fmt.Errorf("lock spool: %w", err)
	}
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintf(f, "%d", os.Getpid())
	}
	return &files{dir: dir, lock: f}, nil
}

func (f *files) close() error {
	err := f.unmap()
	if f.lock != nil {
		// Closing alone would leave the lock with a child that is being forked
		// at this moment, until it executes.
		err = errors.Join(err, unix.Flock(int(f.lock.Fd()), unix.LOCK_UN), f.lock.Close())
		f.lock = nil
	}
	return err
}

func (f *files) sync() error {
	if f.data == nil {
		return os.ErrClosed
	}
	return unix.Msync(f.data, unix.MS_SYNC)
}

func (f *files) unmap() error {
	if f.data == nil {
		return nil
	}
	err := unix.Munmap(f.data)
	f.data = nil
	return err
}

// create writes a new file beside and renames it, so that a kill in between
// leaves no half of one. Zeros are written rather than a hole left: a disk
// that is full later would kill the process at a store into the hole.
func create(path string, g geometry) error {
	f, err := os.OpenFile(path+".tmp", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = func() error {
		if _, err := f.Write(g.encode()); err != nil {
			return err
		}
		page := make([]byte, pageBytes)
		(&head{}).store(page)
		for range g.shards {
			if _, err := f.Write(page); err != nil {
				return err
			}
		}
		zeros := make([]byte, 1<<20)
		for left := g.ringBytes * int64(g.shards); left > 0; {
			n, err := f.Write(zeros[:min(left, int64(len(zeros)))])
			if err != nil {
				return err
			}
			left -= int64(n)
		}
		return f.Sync()
	}()
	if err := errors.Join(err, f.Close()); err != nil {
		// Half a file would keep the disk full.
		return fmt.Errorf("the disk must have %d bytes left for it: %w", g.fileBytes(), errors.Join(err, os.Remove(path+".tmp")))
	}
	return os.Rename(path+".tmp", path)
}

// mapFile maps an existing file and checks its header against its size.
func mapFile(path string) (data []byte, g geometry, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, geometry{}, err
	}
	defer f.Close() //nolint:errcheck // the mapping outlives the descriptor, nothing was written through it
	header := make([]byte, pageBytes)
	if _, err := io.ReadFull(f, header); err != nil {
		return nil, geometry{}, damaged(fmt.Errorf("read header: %w", err))
	}
	if g, err = decodeGeometry(header); err != nil {
		return nil, geometry{}, damaged(err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, geometry{}, err
	}
	if info.Size() != g.fileBytes() {
		return nil, geometry{}, damaged(fmt.Errorf("file has %d bytes, its header says %d", info.Size(), g.fileBytes()))
	}
	data, err = unix.Mmap(int(f.Fd()), 0, int(g.fileBytes()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, geometry{}, fmt.Errorf("map: %w", err)
	}
	return data, g, nil
}

// cut makes the rings of a mapped file.
func (g geometry) cut(data []byte) []*shard {
	shards := make([]*shard, g.shards)
	rings := data[int64(1+g.shards)*pageBytes:]
	for i := range shards {
		shards[i] = &shard{
			page: data[(1+i)*pageBytes:][:pageBytes:pageBytes],
			ring: rings[int64(i)*g.ringBytes:][:g.ringBytes:g.ringBytes],
		}
	}
	return shards
}
