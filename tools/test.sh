#!/usr/bin/env bash
# The tests of all modules (or of $PKG) with real servers around them; arguments go to go test. Its closing lines are go
# test's own summary, a line a package. The packages of $quiet run afterwards, one at a time: they measure times.
set -euo pipefail
cd "$(dirname "$0")/.."

tags=${SLUICE_TEST_TAGS:-integration}
timeout=${SLUICE_TEST_TIMEOUT:-9m}
quiet='/(libs/breaker|libs/cache|libs/limit/redisstore|libs/limit/redis|services/e2e)$'
# Packages at once: each may start servers of its own, so more cores are not simply more packages.
cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
parallel=$((cores < 4 ? cores : 4))

# both_phases runs inside with-servers, so that both find the same servers.
both_phases() {
	local rc=0 all alone together
	# PKG may be several patterns: word splitting is wanted.
	# shellcheck disable=SC2086
	all=$(go list -tags "$tags" ${PKG:-work})
	together=$(grep -Ev "$quiet" <<<"$all" || true)
	alone=$(grep -E "$quiet" <<<"$all" || true)
	# shellcheck disable=SC2086
	[ -z "$together" ] || go test -tags "$tags" -timeout "$timeout" -p "$parallel" "$@" $together || rc=$?
	# shellcheck disable=SC2086
	[ -z "$alone" ] || go test -tags "$tags" -timeout "$timeout" -p 1 "$@" $alone || rc=$?
	return "$rc"
}

if [ "${1:-}" = --with-servers-around ]; then
	shift
	both_phases "$@"
	exit
fi
deploy/dev/install.sh
go build -o bin/with-servers ./libs/devserver/cmd/with-servers
bin/with-servers -- tools/test.sh --with-servers-around "$@" 2>&1 |
	grep --line-buffered -v '\[no test files\]$'
