#!/usr/bin/env bash
# Shows three things on a running `make run`, side by side, in half a minute:
#   1. a fixed against a sliding window at the edge
#   2. a rate against a quota on one path
#   3. what `open`, `closed` and `local` do while Redis is away
# With `make run ARGS='--port-offset 100'`: SLUICE_GATEWAY=http://127.0.0.1:8180 SLUICE_URL=http://127.0.0.1:8188 SLUICE_DEMO_REDIS_PORT=16479.
# It makes rules named demo-… and deletes them again. Tenants are new each time, so it can be run often.
set -euo pipefail
cd "$(dirname "$0")/../.."

gate=${SLUICE_GATEWAY:-http://127.0.0.1:8080}
export SLUICE_TOKEN=${SLUICE_TOKEN:-dev-admin}
redis_port=${SLUICE_DEMO_REDIS_PORT:-16379}
tenant=demo-$(date +%s)
rules=$(mktemp)
trap 'for id in demo-fixed demo-sliding demo-rate demo-quota demo-open demo-closed demo-local; do bin/sluice rules delete "$id" >/dev/null 2>&1 || true; done; rm -f "$rules"' EXIT

[ -x bin/sluice ] || { echo 'bin/sluice is not built: run `make build`' >&2; exit 1; }
curl -s -o /dev/null "$gate/demo/hello" || { echo "nothing answers at $gate: start \`make run\` in another terminal" >&2; exit 1; }

# send N PATH: one letter an answer: + passed, ~ passed without the store, - 429, x 503
send() {
	for _ in $(seq "$1"); do
		curl -s -o /dev/null -D - -H "X-Tenant-Id: $tenant" "$gate$2" | awk '
			/^HTTP/ { code = $2 } tolower($1) == "sluice-degraded:" { degraded = 1 }
			END { printf "%s", code == 200 ? (degraded ? "~" : "+") : code == 429 ? "-" : code == 503 ? "x" : "?" }'
	done
	echo
}
# edge SECONDS: waits until SECONDS after (or, negative, before) the next multiple of 10 s
edge() { sleep "$(date +%s.%N | awk -v after="$1" '{ wait = 10 - $1 % 10 + after; if (wait < 0) wait += 10; print wait }')"; }

cat >"$rules" <<YAML
- {id: demo-fixed, subject: {kind: tenant, value: "*"}, scope: {service: demo, endpoint: GET /demo/fixed}, metric: demo-fixed, limit: {algorithm: fixedWindow, limit: 10, window: 10s}}
- {id: demo-sliding, subject: {kind: tenant, value: "*"}, scope: {service: demo, endpoint: GET /demo/sliding}, metric: demo-sliding, limit: {algorithm: slidingWindow, limit: 10, window: 10s}}
- {id: demo-rate, subject: {kind: tenant, value: "*"}, scope: {service: demo, endpoint: GET /demo/both}, metric: demo-both, limit: {algorithm: gcra, limit: 5, window: 1s, burst: 5}}
- {id: demo-quota, subject: {kind: tenant, value: "*"}, scope: {service: demo, endpoint: GET /demo/both}, metric: demo-both, limit: {algorithm: quota, kind: renewing, limit: 20, period: month}}
- {id: demo-open, subject: {kind: tenant, value: "*"}, scope: {service: demo, endpoint: GET /demo/open}, metric: demo-open, limit: {algorithm: fixedWindow, limit: 10, window: 1h}, onStoreLoss: open}
- {id: demo-closed, subject: {kind: tenant, value: "*"}, scope: {service: demo, endpoint: GET /demo/closed}, metric: demo-closed, limit: {algorithm: fixedWindow, limit: 10, window: 1h}, onStoreLoss: closed}
- {id: demo-local, subject: {kind: tenant, value: "*"}, scope: {service: demo, endpoint: GET /demo/local}, metric: demo-local, limit: {algorithm: fixedWindow, limit: 10, window: 1h}, onStoreLoss: local}
YAML
bin/sluice rules apply -f "$rules" >/dev/null 2>&1

echo '+ passed   ~ passed without the store   - 429   x 503'
echo
echo '1. 10 requests just before the edge of a 10 s window, 10 just after it; both rules allow 10 per 10 s'
edge -1.5
before_fixed=$(send 10 /demo/fixed) before_sliding=$(send 10 /demo/sliding)
edge 0.1
printf '   fixedWindow    %s | %s\n' "$before_fixed" "$(send 10 /demo/fixed)"
printf '   slidingWindow  %s | %s\n' "$before_sliding" "$(send 10 /demo/sliding)"
echo
echo '2. one path with a rate (5 a second) and a quota (20 a month): the rate lets pass again after a second, the quota does not'
for second in 1 2 3 4 5 6; do printf '   second %s  %s\n' "$second" "$(send 8 /demo/both)"; sleep 1; done
echo
echo '3. Redis away (paused for 6 s): rules of 10 an hour, 15 requests each'
if ! redis-cli -p "$redis_port" CLIENT PAUSE 6000 ALL >/dev/null 2>&1; then
	echo "   left out: no redis-server answers at port $redis_port that could be paused" >&2
	exit 0
fi
for policy in open closed local; do printf '   %-7s %s\n' "$policy" "$(send 15 "/demo/$policy")"; done
echo '   (local: this gateway'"'"'s share of the 10, divided among the live gateways)'
sleep 6
echo '   Redis is back, and what passed has been charged:'
for policy in open closed local; do printf '   %-7s %s\n' "$policy" "$(send 15 "/demo/$policy")"; done
