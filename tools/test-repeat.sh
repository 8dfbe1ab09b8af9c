#!/usr/bin/env bash
# Runs the whole suite several times, a line a run, and fails when any of them did: a flake is a failure.
#   test-repeat.sh N [arguments of go test]    LOAD=8 runs beside that many busy loops
# Each run's output is kept in the folder it prints.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=$1
shift
load=${LOAD:-0}
if ! [[ $runs =~ ^[1-9][0-9]*$ && $load =~ ^[0-9]+$ ]]; then
	echo "test-repeat: N must be 1 or more and LOAD 0 or more, not '$runs' and '$load'" >&2
	exit 2
fi

# A busy loop ends with this script, also when that is killed.
busy() {
	while kill -0 "$1" 2>/dev/null; do
		for ((i = 0; i < 200000; i++)); do :; done
	done
}
loops=()
trap '[ ${#loops[@]} -eq 0 ] || kill "${loops[@]}" 2>/dev/null || true' EXIT
for ((n = 0; n < load; n++)); do
	busy $$ &
	loops+=($!)
done

# failures names what failed in a log: the tests, or the packages where no test says so (a build, a timeout, a panic).
failures() {
	local names
	names=$(sed -nE 's/^ *--- FAIL: ([^ ]+).*/\1/p; s/^panic: test timed out.*/(timed out)/p' "$1" | sort -u | paste -sd' ' -)
	[ -n "$names" ] || names=$(sed -nE 's/^FAIL[[:space:]]+([^[:space:]]+).*/\1/p' "$1" | sort -u | paste -sd' ' -)
	echo "${names:-(see the log)}"
}

folder=$(mktemp -d "${TMPDIR:-/tmp}/sluice-test-repeat.XXXXXX")
echo "test-repeat: logs in $folder"
failed=0
for ((n = 1; n <= runs; n++)); do
	log=$folder/run-$n.log
	begin=$SECONDS
	verdict=ok
	tools/test.sh -count=1 "$@" >"$log" 2>&1 || verdict="FAIL: $(failures "$log")"
	[ "$verdict" = ok ] || failed=$((failed + 1))
	took=$((SECONDS - begin))
	printf 'run %d of %d: %2dm%02ds  %s\n' "$n" "$runs" $((took / 60)) $((took % 60)) "$verdict"
done
echo "test-repeat: $failed of $runs runs failed, beside $load busy loops; logs in $folder"
[ "$failed" -eq 0 ]
