package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCheckNamesEachFault(t *testing.T) {
	t.Parallel()
	const compose = `
name: faulty
services:
  a:
    image: redis:latest
    ports: ["8080:80"]
    volumes: ["./absent.yaml:/etc/absent.yaml"]
  b:
    image: ghcr.io:443/x/y:1.2.3
    ports: ["8080:80"]
    depends_on: [a]
    healthcheck: {test: [CMD, "true"]}
  c:
    build: {context: ., dockerfile: Absent}
    healthcheck: {test: [CMD, "true"]}
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker-compose.yml"), []byte(compose), 0o600); err != nil {
		t.Fatal(err)
	}
	project, err := load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`a: image "redis:latest" is not pinned`,
		"a: no health check",
		"a: stat " + filepath.Join(dir, "absent.yaml") + ": no such file or directory",
		"b: depends on a as service_started, want service_healthy",
		"b: port 8080 is a's already",
		"c: stat " + filepath.Join(dir, "Absent") + ": no such file or directory",
	}
	if got := check(project); !slices.Equal(got, want) {
		t.Errorf("faults:\n%q\nwant:\n%q", got, want)
	}
}

func TestSyntaxIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker-compose.yml"), []byte("services: {a: {imag: x}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(t.Context(), dir); err == nil {
		t.Error("an unknown key was accepted")
	}
}
