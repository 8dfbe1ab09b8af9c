#!/usr/bin/env bash
# Each fuzz target for the given time, one after the other: go test fuzzes one target of one package at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}

grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' schemas libs services |
	while IFS=: read -r file declaration; do
		target=${declaration#func }
		echo "fuzz: $(dirname "$file") $target for $time"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$(dirname "$file")"
	done
