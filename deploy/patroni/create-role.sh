#!/bin/sh
# Makes the database of the nodes and its owner, once; Patroni gives the superuser's address. pg_monitor: the nodes look whether
# a synchronous standby is there. There is none yet, so these commits don't wait for one.
set -eu
export PGOPTIONS='-c synchronous_commit=local'
psql --quiet --no-psqlrc -v ON_ERROR_STOP=1 -v password="$CALLSIGN_DATABASE_PASSWORD" "$1" <<'END'
create role callsign login password :'password' in role pg_monitor;
create database callsign owner callsign;
END
