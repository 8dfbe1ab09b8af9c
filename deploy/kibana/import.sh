#!/usr/bin/env bash
# Runs in the kibana-setup container: imports the data view, again at each start (overwrite), and then only waits.
set -euo pipefail
until curl -sf -X POST 'http://kibana:5601/api/saved_objects/_import?overwrite=true' \
	-H 'kbn-xsrf: sluice' --form file=@/setup/usage.ndjson; do
	sleep 2
done
touch /tmp/imported
exec sleep infinity
