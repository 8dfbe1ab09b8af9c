package devserver

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// postgresBinaries is the folder with initdb and postgres for the data in dir: Debian's, of the data's own major
// version where there is data, else the newest; else PATH's; else downloaded ones.
func postgresBinaries(dir string) (string, error) {
	const debian = "/usr/lib/postgresql/*/bin/initdb"
	found, _ := filepath.Glob(debian)
	made := dataVersion(dir)
	best, bin := 0, ""
	for _, path := range found {
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		if err != nil {
			continue
		}
		if version == made {
			return filepath.Dir(path), nil
		}
		if version > best {
			best, bin = version, filepath.Dir(path)
		}
	}
	if bin != "" {
		return bin, nil
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		// A link in PATH may point at a wrapper's neighbour; the real folder has both programs.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(real), nil
		}
	}
	return downloadedPostgres()
}

// dataVersion is the major version that made the data in dir, 0 for none.
func dataVersion(dir string) int {
	raw, err := os.ReadFile(filepath.Join(dir, "data", "PG_VERSION"))
	if err != nil {
		return 0
	}
	version, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
	return version
}

// downloadedPostgres fetches binaries from Maven Central once. The library cannot fetch alone, so it is asked to start
// a server, which it may even fail to do (as root): only the unpacked programs are of interest.
func downloadedPostgres() (string, error) {
	cache, err := downloadDir()
	if err != nil {
		return "", err
	}
	const version = embedded.V17
	home := filepath.Join(cache, "postgres-"+string(version))
	bin := filepath.Join(home, "bin")
	if _, err := os.Stat(filepath.Join(bin, "postgres")); err == nil {
		return bin, nil
	}
	scratch, err := os.MkdirTemp("", "sluice-postgres-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	port, err := FreePort()
	if err != nil {
		return "", err
	}
	pg := embedded.NewDatabase(embedded.DefaultConfig().Version(version).Port(uint32(port)).Logger(io.Discard).
		CachePath(filepath.Join(cache, "download")).BinariesPath(home).RuntimePath(scratch))
	startErr := pg.Start()
	if startErr == nil {
		_ = pg.Stop()
	}
	if _, err := os.Stat(filepath.Join(bin, "postgres")); err != nil {
		return "", fmt.Errorf("no PostgreSQL on this machine (Debian: apt-get install postgresql) and none to download: %w", startErr)
	}
	return bin, nil
}

// downloadDir is the cache folder; for root it is one that the user Postgres runs as can read.
func downloadDir() (string, error) {
	if os.Geteuid() != 0 {
		return CacheDir()
	}
	dir := "/var/lib/sluice-binaries"
	return dir, os.MkdirAll(dir, 0o755)
}
