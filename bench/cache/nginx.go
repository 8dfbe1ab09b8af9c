package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-platform/sluice/libs/devserver"
)

func nginxPlain(ctx context.Context, s *stand, n int) (proxies, error) {
	return startNginx(ctx, s, n, "")
}

func nginxProtected(ctx context.Context, s *stand, n int) (proxies, error) {
	return startNginx(ctx, s, n, `
			proxy_cache_lock on;
			proxy_cache_use_stale updating error timeout http_500 http_502 http_503 http_504;
			proxy_cache_background_update on;`)
}

// nginxConf is one nginx: FOLDER, PORT, ORIGIN and PROTECTION are filled in.
const nginxConf = `daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid FOLDER/nginx.pid;
error_log stderr error;
events { worker_connections 8192; }
http {
	access_log off;
	client_body_temp_path FOLDER/body;
	proxy_temp_path FOLDER/proxy;
	fastcgi_temp_path FOLDER/fastcgi;
	uwsgi_temp_path FOLDER/uwsgi;
	scgi_temp_path FOLDER/scgi;
	proxy_cache_path FOLDER/cache keys_zone=shop:10m;
	keepalive_requests 1000000;
	upstream origin { server ORIGIN; keepalive 64; }
	server {
		listen 127.0.0.1:PORT backlog=4096;
		location / {
			proxy_pass http://origin;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_cache shop;PROTECTION
		}
	}
}
`

// nginxPath is where Debian has it, too, for those whose PATH has no sbin.
func nginxPath() (string, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		return "", fmt.Errorf("%w (deploy/dev/install.sh nginx)", err)
	}
	return program, nil
}

func startNginx(ctx context.Context, s *stand, n int, protection string) (p proxies, err error) {
	program, err := nginxPath()
	if err != nil {
		return p, err
	}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	for i := range n {
		folder := filepath.Join(s.dir, "nginx"+strconv.Itoa(i))
		port, err := devserver.FreePort()
		if err != nil {
			return p, err
		}
		conf, err := writeNginx(folder, strings.NewReplacer(
			"FOLDER", folder, "PORT", strconv.Itoa(port), "ORIGIN", s.origin.addr, "PROTECTION", protection).Replace(nginxConf))
		if err != nil {
			return p, err
		}
		cmd := exec.CommandContext(ctx, program, "-c", conf, "-p", folder, "-e", "stderr")
		cmd.Stderr = os.Stderr
		// SIGTERM: the master takes its worker along.
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		if err := cmd.Start(); err != nil {
			return p, fmt.Errorf("start nginx: %w", err)
		}
		p.add("127.0.0.1:"+strconv.Itoa(port), func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
			_ = os.RemoveAll(folder)
		})
	}
	return p, p.await(ctx)
}

func writeNginx(folder, conf string) (file string, err error) {
	// Its worker runs as another user where this one is root, and must reach its folders.
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	file = filepath.Join(folder, "nginx.conf")
	return file, os.WriteFile(file, []byte(conf), 0o600)
}

// proxies are addresses to read through, a process each.
type proxies struct {
	addrs []string
	stops []func()
}

func (p *proxies) add(addr string, stop func()) {
	p.addrs = append(p.addrs, addr)
	p.stops = append(p.stops, stop)
}

func (p *proxies) stop() {
	for _, stop := range p.stops {
		stop()
	}
}

// await waits until all accept connections.
func (p *proxies) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	for _, addr := range p.addrs {
		for {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err == nil {
				_ = conn.Close()
				break
			}
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("wait for a proxy: %w", err)
			}
		}
	}
	return nil
}
