#!/usr/bin/env bash
# The tests of all modules (or of $PKG) with real servers around them; arguments go to go test. Its closing lines are go test's own
# summary, a line a package.
set -euo pipefail
cd "$(dirname "$0")/.."

tags=${SLUICE_TEST_TAGS:-integration}
timeout=${SLUICE_TEST_TIMEOUT:-9m}
# Packages at once: each may start servers of its own, so more cores are not simply more packages.
cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
parallel=$((cores < 4 ? cores : 4))

deploy/dev/install.sh
go build -o bin/with-servers ./libs/devserver/cmd/with-servers
# PKG may be several patterns: word splitting is wanted.
# shellcheck disable=SC2086
bin/with-servers -- go test -tags "$tags" -timeout "$timeout" -p "$parallel" "$@" ${PKG:-work} 2>&1 |
	grep --line-buffered -v '\[no test files\]$'
