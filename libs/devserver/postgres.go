package devserver

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresOptions choose where and how a Postgres runs. Dir is required.
type PostgresOptions struct {
	// Dir is the wanted place of the data; see Postgres.Dir for where it really lies.
	Dir string
	// Port on 127.0.0.1; 0 takes a free one.
	Port int
	// PortHint names what chooses another port (a flag, a setting) in the error of a taken one.
	PortHint string
	// Database is made when missing; empty means "postgres".
	Database string
	// Discarded is called with an outside folder (see StartPostgres) that was deleted; nil tells nobody.
	Discarded func(dir string)
	// NoSync turns fsync off: faster, and safe against kill -9 of every process, not against a crash of the machine.
	NoSync bool
	// Settings are added to the command line and win over ours, for example "max_slot_wal_keep_size": "64MB".
	Settings map[string]string
}

// Postgres is one server with logical replication on, and its superuser "sluice".
type Postgres struct {
	server
	database string
}

const postgresUser = "sluice"

// URL is the connection string of the database asked for.
func (p *Postgres) URL() string { return PostgresURL(p.Port(), p.database) }

// PostgresURL is that of a database of the server that StartPostgres starts on a
// port. It has no password: the server trusts this machine.
func PostgresURL(port int, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(postgresUser), Host: loopback(port),
		Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// StartPostgres makes the data folder when it is new, starts the server and returns when it answers. Root is refused
// by Postgres, so root starts it as the user postgres (else nobody); the data then lies elsewhere when that user cannot
// reach Dir. Such an outside folder lives as long as Dir: it is discarded when Dir was deleted meanwhile. ctx bounds the
// wait only.
func StartPostgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	owner, err := postgresOwner()
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	dir, err := owner.settle(ctx, o.Dir, o.Discarded)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	bin, err := postgresBinaries(dir)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	return onPort(ctx, "postgres", o.Port, o.PortHint, func(port int) (*Postgres, error) {
		p := &Postgres{database: o.Database, server: server{spec: launch{
			name: "postgres", port: port, hint: o.PortHint, dir: dir, cred: owner.cred,
			program: filepath.Join(bin, "postgres"), args: postgresArgs(dir, port, o), env: []string{"LC_ALL=C"},
			prepare: func(ctx context.Context) error {
				if err := initPostgres(ctx, bin, dir, owner); err != nil {
					return err
				}
				return clearStalePID(ctx, dir)
			},
			ready: func(ctx context.Context) error { return PingPostgres(ctx, PostgresURL(port, "postgres")) },
			// SIGINT: disconnect everybody and shut down. SIGQUIT for an orphan: at once, backends too, recovery later.
			stopSignal: syscall.SIGINT, deathSignal: syscall.SIGQUIT, stopWait: 15 * time.Second,
		}}}
		if p.database == "" {
			p.database = "postgres"
		}
		if err := p.Start(ctx); err != nil {
			return nil, err
		}
		if err := ensureDatabase(ctx, port, p.database); err != nil {
			p.Kill()
			return nil, fmt.Errorf("start postgres: %w", err)
		}
		return p, nil
	})
}

func postgresArgs(dir string, port int, o PostgresOptions) []string {
	fsync := "on"
	if o.NoSync {
		fsync = "off"
	}
	args := []string{
		"-D", filepath.Join(dir, "data"), "-p", strconv.Itoa(port), "-k", "", "-h", "127.0.0.1",
		"-c", "wal_level=logical", "-c", "max_wal_senders=20", "-c", "max_replication_slots=100",
		"-c", "max_connections=300", "-c", "fsync=" + fsync,
		// Nothing but stderr, which is our log file, whatever a distribution's defaults say.
		"-c", "logging_collector=off", "-c", "log_destination=stderr",
	}
	for key, value := range o.Settings {
		args = append(args, "-c", key+"="+value)
	}
	return args
}

// initPostgres makes the data folder under another name and renames it: an interrupted initdb leaves nothing that
// looks whole.
func initPostgres(ctx context.Context, bin, dir string, owner account) error {
	data := filepath.Join(dir, "data")
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		return nil
	}
	part := data + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", part, "-U", postgresUser,
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner.cred}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w: %s", dir, err, out)
	}
	return os.Rename(part, data)
}

// clearStalePID removes the lock of a killed server whose process id another program has by now; Postgres clears the
// other cases itself. A server that is still on its way out is waited for.
func clearStalePID(ctx context.Context, dir string) error {
	lock := filepath.Join(dir, "data", "postmaster.pid")
	deadline := time.Now().Add(10 * time.Second)
	for {
		raw, err := os.ReadFile(lock)
		if err != nil {
			return nil // no lock
		}
		first, _, _ := strings.Cut(string(raw), "\n")
		pid, err := strconv.Atoi(strings.TrimSpace(first))
		if err != nil || !strings.Contains(commandLine(pid), filepath.Join(dir, "data")) {
			return os.Remove(lock)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("another postgres (process %d) runs on %s", pid, dir)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// PingPostgres is one probe: nil when a session can be opened.
func PingPostgres(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func ensureDatabase(ctx context.Context, port int, name string) error {
	conn, err := pgx.Connect(ctx, PostgresURL(port, "postgres"))
	if err != nil {
		return fmt.Errorf("make database %s: %w", name, err)
	}
	defer conn.Close(ctx)
	var there bool
	const exists = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
	if err := conn.QueryRow(ctx, exists, name).Scan(&there); err != nil {
		return fmt.Errorf("make database %s: %w", name, err)
	}
	if there {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("make database %s: %w", name, err)
	}
	return nil
}
