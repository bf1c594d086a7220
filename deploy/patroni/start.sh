#!/bin/sh
# Runs Patroni with patroni.yaml beside this file, or the one of PATRONI_FILE. NAME_FILE names a file with the value of NAME.
set -eu
umask 077
for name in PATRONI_SUPERUSER_PASSWORD PATRONI_REPLICATION_PASSWORD CALLSIGN_DATABASE_PASSWORD; do
  eval "file=\${${name}_FILE:-}"
  [ -z "$file" ] || export "$name=$(cat "$file")"
  unset "${name}_FILE"
  eval "[ -n \"\${$name:-}\" ]" || { echo "start.sh: $name is missing" >&2; exit 1; }
done
exec patroni "${PATRONI_FILE:-$(dirname "$0")/patroni.yaml}"
