#!/usr/bin/env bash
# What must hold before a change is merged. Says which step failed; runs them all in the order of their cost.
set -euo pipefail
cd "$(dirname "$0")/.."
modules=(schemas libs services tools tools/rehearsal bench)
everything='integration soak'

step() { echo "lint: $*" >&2; }

step gofmt
unformatted=$(gofmt -l "${modules[@]}")
[ -z "$unformatted" ] || { echo "not formatted (gofmt -w):"$'\n'"$unformatted" >&2 && exit 1; }

step shell scripts parse
git ls-files '*.sh' .ci/run | while read -r script; do bash -n "$script"; done

step each module alone builds and has a tidy go.mod
for module in "${modules[@]}"; do
	(cd "$module" && export GOWORK=off && go build -o /dev/null ./... && go mod tidy -diff)
done

step go vet, without and with the tags of integration tests
go vet work
go vet -tags "$everything" work
for module in tools bench; do
	(cd "$module" && export GOWORK=off && go vet ./... && go test ./...)
done

step staticcheck
mkdir -p bin
(cd tools && GOWORK=off go build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck)
bin/staticcheck -tags "$everything" ./schemas/... ./libs/... ./services/... ./tools/rehearsal/...
(cd bench && GOWORK=off ../bin/staticcheck ./...)

step compose file
(cd tools && GOWORK=off go run ./composecheck ..)

step generated files
tools/check-generate.sh
