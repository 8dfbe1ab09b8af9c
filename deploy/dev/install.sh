#!/usr/bin/env bash
# Installs what `make run` and `make test` start as child processes: PostgreSQL and Redis from Debian, Kafka and
# OpenSearch from Maven Central. Idempotent; touches only what is missing.
#   install.sh            everything
#   install.sh postgres redis kafka search    only these
#   install.sh nginx      what make bench-cache compares with; not part of everything
# SLUICE_CACHE_DIR (default $XDG_CACHE_HOME/sluice, ~/.cache/sluice) holds the jars, shared by all clones.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${SLUICE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}

say() { echo "install: $*"; }

# Debian packages that are missing, asked for in one go: name them all before giving up.
missing_packages() {
	local want pkgs=()
	for want in "$@"; do
		case $want in
		postgres) have_postgres || pkgs+=(postgresql) ;;
		redis) command -v redis-server >/dev/null || pkgs+=(redis-server) ;;
		nginx) [ -x /usr/sbin/nginx ] || command -v nginx >/dev/null || pkgs+=(nginx) ;;
		kafka | search)
			command -v javac >/dev/null || pkgs+=(default-jdk-headless)
			have_jars "$want" || command -v mvn >/dev/null || pkgs+=(maven)
			;;
		*) say "unknown server $want" >&2 && exit 2 ;;
		esac
	done
	# One name a line, each once; nothing at all when nothing is missing.
	[ ${#pkgs[@]} -eq 0 ] || printf '%s\n' "${pkgs[@]}" | sort -u
}

have_postgres() {
	compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null
}

pom_of() { case $1 in kafka) echo kafka ;; search) echo opensearch ;; esac; }

version_of() { sed -n 's:.*<server.version>\(.*\)</server.version>.*:\1:p' "$here/$(pom_of "$1")/pom.xml"; }

folder_of() { echo "$cache/$(pom_of "$1")-$(version_of "$1")"; }

# What a jar folder was made from: it is made anew when its pom, launcher or logging configuration has changed.
sources_of() { cat "$here/$(pom_of "$1")"/* | sha256sum; }

have_jars() { [ "$(cat "$(folder_of "$1")/.complete" 2>/dev/null)" = "$(sources_of "$1")" ]; }

# Installing must not start a server: Debian's would take 5432 and 6379. policy-rc.d answers 101, "do not".
apt_install() {
	local policy=/usr/sbin/policy-rc.d made=
	if [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy && made=1
	fi
	local rc=0
	{
		DEBIAN_FRONTEND=noninteractive apt-get update -q &&
			DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
	} </dev/null || rc=$?
	[ -z "$made" ] || rm -f $policy
	return $rc
}

install_packages() {
	local packages
	packages=$(missing_packages "$@")
	[ -n "$packages" ] || return 0
	# Word splitting is wanted: one package a word.
	# shellcheck disable=SC2086
	set -- $packages
	if ! command -v apt-get >/dev/null; then
		say "missing: $* (Debian's names). Install them with this system's package manager." >&2
		exit 1
	fi
	if [ "$(id -u)" -ne 0 ]; then
		say "missing: $*. Run: sudo apt-get update && sudo apt-get install $*" >&2
		exit 1
	fi
	say "apt-get install $*"
	apt_install "$@"
}

copy_dependencies() {
	mvn -B -q -Dstyle.color=never -f "$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$2" </dev/null
}

# Jars go to a folder of their own first and are moved as one: a second run of this script, or one that was
# interrupted, never sees half of them.
install_jars() {
	local server=$1 pom folder part
	pom=$here/$(pom_of "$server")
	folder=$(folder_of "$server")
	have_jars "$server" && return 0
	part=$(mktemp -d "$cache/part.XXXXXX")
	# shellcheck disable=SC2064 # the folder of now, not of then
	trap "rm -rf '$part'" EXIT
	say "$(pom_of "$server") $(version_of "$server"): jars from Maven Central (about 50 MB)"
	copy_dependencies "$pom" "$part/lib" || copy_dependencies "$pom" "$part/lib" || {
		say "Maven could not fetch the jars, twice; its message is above" >&2
		exit 1
	}
	mkdir -p "$part/classes"
	cp "$pom"/*.properties "$part/classes/"
	if compgen -G "$pom/*.java" >/dev/null; then
		javac -proc:none -nowarn -cp "$part/lib/*" -d "$part/classes" "$pom"/*.java
	fi
	chmod 755 "$part"
	sources_of "$server" >"$part/.complete"
	rm -rf "$folder"
	mv "$part" "$folder"
}

# all_there asks for no package list and takes no lock: it is what every run but the first finds.
all_there() {
	local server missing
	missing=$(missing_packages "$@") || exit
	[ -z "$missing" ] || return 1
	for server in "$@"; do
		case $server in kafka | search) have_jars "$server" || return 1 ;; esac
	done
}

main() {
	[ $# -gt 0 ] || set -- postgres redis kafka search
	all_there "$@" && return
	install_packages "$@"
	mkdir -p "$cache"
	local server
	for server in "$@"; do
		case $server in
		kafka | search) (
			# Two clones may install at once; the second waits and finds it done.
			flock 9
			install_jars "$server"
		) 9>"$cache/$server.lock" ;;
		esac
	done
	say "ready: $* (jars in $cache)"
}

main "$@"
