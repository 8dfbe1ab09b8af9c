package devserver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// SearchVersion is the OpenSearch deploy/dev/install.sh puts into the cache. It stands in for Elasticsearch 8 where no
// Docker engine answers: Elasticsearch is not to be had as a package.
const SearchVersion = "2.19.6"

// SearchOptions choose where and how a search node runs. Dir is required.
type SearchOptions struct {
	// Dir holds data and log; it is made when missing.
	Dir string
	// Port on 127.0.0.1; 0 takes a free one. The transport port is a free one.
	Port int
	// PortHint names what chooses another port (a flag, a setting) in the error of a taken one.
	PortHint string
	// HeapMB is the JVM's heap; 0 means 512.
	HeapMB int
}

// Search is one OpenSearch node.
type Search struct{ server }

// URL is the base address of its REST interface.
func (s *Search) URL() string { return "http://" + s.Addr() }

// Flavor names the product, as the setting elasticsearch.flavor does.
func (s *Search) Flavor() string { return "opensearch" }

// StartSearch starts an OpenSearch node and returns when its cluster is at least yellow. ctx bounds the wait only;
// allow it a minute on a busy machine.
func StartSearch(ctx context.Context, o SearchOptions) (*Search, error) {
	classes, err := jars("opensearch", SearchVersion)
	if err != nil {
		return nil, fmt.Errorf("start search: %w", err)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("start search: %w (Debian: apt-get install default-jdk-headless)", err)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start search: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o755); err != nil {
		return nil, fmt.Errorf("start search: %w", err)
	}
	options := jvm(orDefault(o.HeapMB, 512), "-XX:MaxDirectMemorySize=128m", "-Dlog4j2.disable.jmx=true", "-cp", classes)
	return onPort(ctx, "search", o.Port, o.PortHint, func(port int) (*Search, error) {
		transport, err := FreePort()
		if err != nil {
			return nil, err
		}
		s := &Search{server{spec: launch{
			name: "search", port: port, hint: o.PortHint, dir: dir, program: java,
			args:       slices.Concat(options, []string{"SearchNode"}, searchSettings(dir, port, transport)),
			ready:      func(ctx context.Context) error { return PingSearch(ctx, "http://"+loopback(port)) },
			stopSignal: syscall.SIGTERM, deathSignal: syscall.SIGKILL, stopWait: 15 * time.Second,
		}}}
		if err := s.Start(ctx); err != nil {
			return nil, err
		}
		return s, nil
	})
}

func searchSettings(dir string, port, transport int) []string {
	return []string{
		"path.home=" + dir,
		"path.data=" + filepath.Join(dir, "data"),
		"path.logs=" + dir,
		"cluster.name=sluice-dev",
		"network.host=127.0.0.1",
		"http.port=" + strconv.Itoa(port),
		"transport.port=" + strconv.Itoa(transport),
		"discovery.type=single-node",
		"node.store.allow_mmap=false",
		// A developer's disk is often over 90 % full; the node would then refuse to write.
		"cluster.routing.allocation.disk.threshold_enabled=false",
	}
}

// probe keeps no connection: a probe must not leave a goroutine behind in the program that starts the server.
var probe = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// PingSearch is one probe: nil when the cluster at base (http://host:port) is at least yellow.
func PingSearch(ctx context.Context, base string) error {
	url := base + "/_cluster/health?wait_for_status=yellow&timeout=1s"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := probe.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("search answers %s", answer.Status)
	}
	return nil
}
