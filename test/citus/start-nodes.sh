#!/usr/bin/env bash
# Starts a Citus cluster of three nodes on this machine, for the tests and benchmarks that need one. Runs until Ctrl-C:
#   test/citus/start-nodes.sh /usr/lib/postgresql/17/bin [PORT]
# The first argument is the folder with the programs of a Postgres that has the Citus extension. The nodes listen only
# on 127.0.0.1, at PORT (by default 7800) and the next two ports. They require no password. Their data is in a temporary
# folder, which is deleted at the end. Postgres refuses to run as root, so if root runs this script, the nodes run as
# `postgres`.
set -euo pipefail

bin=${1:?usage: $0 FOLDER_OF_POSTGRES [PORT]}
port=${2:-7800}
data=$(mktemp -d)

as_postgres() { if [ "$(id -u)" = 0 ]; then su postgres -s /bin/sh -c 'exec "$0" "$@"' -- "$@"; else "$@"; fi; }
sql() { psql --quiet --no-align --tuples-only --set=ON_ERROR_STOP=1 --host=127.0.0.1 --username=postgres "$@"; }
stop() {
  for node in 0 1 2; do as_postgres "$bin/pg_ctl" stop --pgdata="$data/$node" --mode=immediate --silent || true; done
  rm -rf "$data"
}
trap stop EXIT
trap exit INT TERM

if [ "$(id -u)" = 0 ]; then chown postgres "$data"; fi
for node in 0 1 2; do
  as_postgres "$bin/initdb" --pgdata="$data/$node" --auth=trust --username=postgres --encoding=UTF8 --locale=C.UTF-8 >/dev/null
  cat >>"$data/$node/postgresql.conf" <<SETTINGS
port = $((port + node))
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_preload_libraries = 'citus'
citus.node_conninfo = 'sslmode=prefer'
wal_level = logical
max_connections = 300
max_prepared_transactions = 300
fsync = off
SETTINGS
  as_postgres "$bin/pg_ctl" start --pgdata="$data/$node" --log="$data/$node.log" --wait --silent
  sql --port=$((port + node)) --command='create extension citus' postgres
done
sql --port="$port" postgres <<CLUSTER
select citus_set_coordinator_host('127.0.0.1', $port) \g /dev/null
select citus_add_node('127.0.0.1', $((port + 1))), citus_add_node('127.0.0.1', $((port + 2))) \g /dev/null
CLUSTER
echo "export TEST_CITUS_URL=postgres://postgres@127.0.0.1:$port/postgres"
sleep infinity &
wait $!
