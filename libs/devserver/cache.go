package devserver

import (
	"fmt"
	"os"
	"path/filepath"
)

// CacheDir is the folder deploy/dev/install.sh puts jars and binaries in, shared by all clones: $SLUICE_CACHE_DIR, else
// sluice below the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv("SLUICE_CACHE_DIR"); dir != "" {
		return dir, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w (set SLUICE_CACHE_DIR)", err)
	}
	return filepath.Join(base, "sluice"), nil
}

// jars returns the class path of a server that install.sh has put into the cache.
func jars(server, version string) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, server+"-"+version)
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err != nil {
		return "", fmt.Errorf("%s %s is not in %s: run deploy/dev/install.sh", server, version, cache)
	}
	// classes first: it holds the logging configuration, which a jar may bring too.
	return filepath.Join(dir, "classes") + ":" + filepath.Join(dir, "lib", "*"), nil
}

// jvm are the options of a small, quickly started JVM; heapMB is both floor and ceiling of its heap.
func jvm(heapMB int, more ...string) []string {
	heap := fmt.Sprintf("%dm", heapMB)
	return append([]string{"-Xms" + heap, "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, more...)
}
