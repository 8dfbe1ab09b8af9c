package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestDeployedJSONParses reads what Grafana and Kibana import: both drop a broken file with a line in their log.
func TestDeployedJSONParses(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("../../deploy", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		ext := filepath.Ext(path)
		if ext != ".json" && ext != ".ndjson" {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		documents := [][]byte{raw}
		if ext == ".ndjson" {
			documents = lines(raw)
		}
		for _, document := range documents {
			if !json.Valid(document) {
				t.Errorf("%s: not JSON: %.80s", path, document)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 2 {
		t.Errorf("%d files seen, want the dashboard and the data view at least", seen)
	}
}

func lines(raw []byte) [][]byte {
	var all [][]byte
	scanner := bufio.NewScanner(bytes.NewReader(raw))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		all = append(all, bytes.Clone(scanner.Bytes()))
	}
	return all
}
