#!/usr/bin/env bash
# The twin of `make generate`: generates anew and fails when that changed a file. It compares the tree with itself, not
# with the last commit, so that it also works on work in progress.
set -euo pipefail
cd "$(dirname "$0")/.."

# A file that was deleted but is still in the index has no checksum.
snapshot() {
	git ls-files -z --cached --others --exclude-standard |
		xargs -0 sha256sum 2>/dev/null | sort -k 2 || true
}

before=$(snapshot)
make --no-print-directory generate >&2
after=$(snapshot)
if [ "$before" != "$after" ]; then
	echo "generated files were stale; commit what make generate has written:" >&2
	diff <(echo "$before") <(echo "$after") | sed -n 's/^> [0-9a-f]*  /  /p' >&2
	exit 1
fi
