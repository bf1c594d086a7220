#!/bin/sh
# Fills in the files beside this one and runs Janus with them. Values come from the environment; NAME_FILE names a file with
# the value of NAME. JANUS_FOLDER is where the filled-in files go.
set -eu
umask 077
here=$(dirname "$0")
folder=${JANUS_FOLDER:-/tmp/janus}
for name in JANUS_ADMIN_SECRET JANUS_ADMIN_KEY JANUS_TOKEN_SECRET JANUS_EVENTS_PASSWORD; do
  eval "file=\${${name}_FILE:-}"
  [ -z "$file" ] || export "$name=$(cat "$file")"
  eval "[ -n \"\${$name:-}\" ]" || { echo "start.sh: $name is missing" >&2; exit 1; }
done
mkdir -p "$folder"
for file in "$here"/*.jcfg; do envsubst <"$file" >"$folder/$(basename "$file")"; done
exec "${JANUS_PROGRAM:-janus}" -F "$folder" -C "$folder/janus.jcfg"
