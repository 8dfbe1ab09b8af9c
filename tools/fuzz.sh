#!/usr/bin/env bash
# Each fuzz target for the given time, one after the other: go test fuzzes one target of one package at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# On a busy machine go test can report the end of its own time as a failure ("context deadline exceeded"), without an
# input that fails. A real failure always writes one.
fuzz() {
	go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" "./$1" 2>&1 | tee "$log" && return 0
	grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"
}

grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' schemas libs services |
	while IFS=: read -r file declaration; do
		target=${declaration#func }
		echo "fuzz: $(dirname "$file") $target for $time"
		fuzz "$(dirname "$file")" "$target"
	done
