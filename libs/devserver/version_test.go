package devserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/libs/devserver"
)

// TestVersionsAreThoseOfTheInstaller holds the two places together: the folder in the cache bears the version.
func TestVersionsAreThoseOfTheInstaller(t *testing.T) {
	t.Parallel()
	for server, version := range map[string]string{"kafka": devserver.KafkaVersion, "opensearch": devserver.SearchVersion} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "dev", server, "pom.xml"))
		if err != nil {
			t.Fatal(err)
		}
		if want := "<server.version>" + version + "</server.version>"; !strings.Contains(string(raw), want) {
			t.Errorf("%s/pom.xml lacks %s", server, want)
		}
	}
}
