#!/usr/bin/env bash
# Changes the role with which the service connects to Postgres, while the service runs: k8s/rotate.sh
# ADMIN_DATABASE_URL must lead directly to Postgres, or to the coordinator of a Citus cluster. The role in
# this url must be allowed to alter bookmarks_a and bookmarks_b. The service uses one of these two roles. The script
# gives the other role a new password on every node and makes the service use that role. Then the script locks the role
# that the service used before. If the script stops halfway, run it again: it continues with the same password.
set -euo pipefail
: "${ADMIN_DATABASE_URL:?directly to Postgres, as a role that may alter roles}"
namespace=${NAMESPACE:-bookmarks}
roll_out_limit=${ROLL_OUT_LIMIT:-20m}
umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

stop() { echo "rotate: $*" >&2 && exit 1; }

# Prints each line of its argument as a failure. Returns 1 unless the argument is empty.
report() { [ -z "$1" ] || { printf '%s\n' "$1" | sed 's/^/rotate: /' >&2 && return 1; }; }

in_namespace() { kubectl --namespace "$namespace" "$@"; }
read_secret() { in_namespace get secret "$1" --output "go-template={{index .data \"$2\" | base64decode}}"; }

# Sets some keys of a Secret and keeps the others. The arguments are the Secret's name, and pairs of a key and a file
# with the key's value. This script passes secrets in files, pipes and the environment, because anybody on the machine
# can read a program's arguments.
write_secret() {
  local name=$1 values=''
  shift
  while [ $# -gt 0 ]; do
    values="$values${values:+,}\"$1\":\"$(base64 <"$2" | tr -d '\n')\""
    shift 2
  done
  printf '{"data":{%s}}' "$values" >"$folder/patch"
  in_namespace patch secret "$name" --patch-file "$folder/patch"
}

roll() {
  for deployment in "$@"; do in_namespace rollout restart "deployment/$deployment"; done
  for deployment in "$@"; do in_namespace rollout status "deployment/$deployment" --timeout="$roll_out_limit"; done
}

# Splits ADMIN_DATABASE_URL into admin_url, without a password, and admin_password. Replaces the database in admin_url
# with the service's own, because in a cluster only that database knows the nodes.
read_admin_url() {
  local rest=${ADMIN_DATABASE_URL#*://} migrate database authority user=''
  migrate=$(read_secret connections MIGRATE_DATABASE_URL)
  database=${migrate#*://*/}
  authority=${rest%%[/?]*}
  if [[ $authority == *@* ]]; then user=${authority%@*}; fi
  admin_url="postgres://${user%%:*}${user:+@}${authority##*@}/${database%%\?*}"
  if [[ $rest == *\?* ]]; then admin_url="$admin_url?${rest#*\?}"; fi
  if [[ $user == *:* ]]; then
    user=${user#*:}
    user=${user//\\/\\\\}
    admin_password=$(printf %b "${user//%/\\x}")
  fi
}

# Runs SQL from standard input. Errors are terse, because a longer error message would repeat the statement with its
# secrets.
run_sql() {
  PGPASSWORD=${admin_password-${PGPASSWORD-}} psql --no-psqlrc --quiet --tuples-only --no-align \
    --set=ON_ERROR_STOP=1 --set=VERBOSITY=terse --dbname="$admin_url"
}

# Takes a lock, because two runs at the same time would give one role two passwords. The lock belongs to a session that
# ends with this process.
take_lock() {
  mkfifo "$folder/open"
  {
    echo "select case when pg_try_advisory_lock(hashtext('k8s/rotate.sh')) then 'taken' else 'held' end;"
    cat "$folder/open"
  } | run_sql >"$folder/locked" &
  local session=$!
  exec 3>"$folder/open"
  until [ -s "$folder/locked" ]; do
    kill -0 "$session" 2>/dev/null || stop 'Postgres cannot be reached; nothing was changed'
    sleep 0.1
  done
  [ "$(cat "$folder/locked")" = taken ] || stop 'another run is in progress; nothing was changed'
}

# Sets is_cluster to t on a Citus cluster, and otherwise to f. On a cluster, stops unless the url leads to the
# coordinator and all nodes are active. Only the coordinator is sure to list nodes that were added recently.
find_cluster() {
  is_cluster=$(run_sql <<<"select to_regclass('pg_catalog.pg_dist_node') is not null;")
  [ "$is_cluster" = t ] || return 0
  local faults
  faults=$(
    run_sql <<'EOS'
select 'ADMIN_DATABASE_URL does not lead to the coordinator'
from pg_catalog.pg_dist_local_group
where groupid <> 0
union all
select nodename || ':' || nodeport || ' is not active: activate it, or remove it from the cluster'
from pg_catalog.pg_dist_node as node
where noderole::text <> 'secondary'
  and not isactive
  -- A clone has the roles of the node that it follows. Older versions lack this column.
  and not coalesce((to_jsonb(node) ->> 'nodeisclone')::boolean, false);
EOS
  )
  [ -z "$faults" ] || stop "$faults; nothing was changed"
}

# Runs one statement from standard input. In a cluster, the coordinator runs it on every node. Without a cluster, it
# runs on the only Postgres. Prints the nodes that failed, but no rows.
on_every_node() {
  cat >"$folder/statement"
  if [ "$is_cluster" = f ]; then
    run_sql <"$folder/statement" >/dev/null
    return
  fi
  local failures
  failures=$(
    run_sql <<EOS
\set statement \`cat "$folder/statement"\`
select coalesce(nodename || ':' || nodeport, 'the coordinator') || ': ' || coalesce(result, 'no result')
from pg_catalog.run_command_on_all_nodes(:'statement')
left join pg_catalog.pg_dist_node using (nodeid)
where not success;
EOS
  ) || return
  report "$failures"
}

# Alters a role on each node separately. If nodes propagated the change to each other, they would wait for each other's
# locks.
alter_role() {
  on_every_node <<EOS
do \$do\$
begin
  perform set_config('citus.enable_ddl_propagation', 'off', true);
  alter role $1 $2;
end
\$do\$;
EOS
}

# Prints the verifier that Postgres stores for a password. Servers may log statements, so a statement contains the
# verifier and never the password.
make_verifier() {
  PASSWORD=$password node -e '
    const { createHash, createHmac, pbkdf2Sync, randomBytes } = require("node:crypto");
    const salt = randomBytes(16);
    const salted = pbkdf2Sync(process.env.PASSWORD, salt, 4096, 32, "sha256");
    const sign = (text) => createHmac("sha256", salted).update(text).digest();
    const stored = createHash("sha256").update(sign("Client Key")).digest("base64");
    const server = sign("Server Key").toString("base64");
    console.log(`SCRAM-SHA-256$4096:${salt.toString("base64")}$${stored}:${server}`);
  '
}

# Gives the new password to nodes that connect to each other with a password from pg_dist_authinfo. Only a superuser can
# read that table. If the administrator is not a superuser, this function changes nothing. check_nodes then reports the
# nodes that cannot reach each other as the new role.
pass_to_nodes() {
  local has_passwords
  has_passwords=$(
    run_sql <<'EOS'
select coalesce(has_table_privilege(to_regclass('pg_catalog.pg_dist_authinfo'), 'update'), false) as is_open \gset
\if :is_open
  select exists (
    select from pg_catalog.pg_dist_authinfo
    where rolename in ('bookmarks_a', 'bookmarks_b') and authinfo like '%password=%'
  );
\endif
EOS
  ) || return
  [ "$has_passwords" = t ] || return 0
  on_every_node <<EOS
do \$do\$
begin
  perform set_config('log_min_error_statement', 'panic', true);
  insert into pg_catalog.pg_dist_authinfo (nodeid, rolename, authinfo)
  select nodeid, '$new', regexp_replace(authinfo, 'password=\S+', 'password=$password')
  from pg_catalog.pg_dist_authinfo
  where rolename = '$old' and authinfo like '%password=%'
  on conflict (rolename, nodeid) do update set authinfo = excluded.authinfo;
end
\$do\$;
EOS
}

# Checks that nodes can connect to each other as the new role. They connect as the role of the session.
check_nodes() {
  [ "$is_cluster" = t ] || return 0
  local failures
  failures=$(
    run_sql <<EOS
set role $new;
select format('%s:%s does not reach %s:%s as $new', from_nodename, from_nodeport, to_nodename, to_nodeport)
from pg_catalog.citus_check_cluster_node_health()
where result is not true;
EOS
  ) || return
  report "$failures"
}

# Finds the role of the pods (serving), the role to lock (old) and the role to use from now on (new). Continues an
# interrupted run with its password. Otherwise makes a new password.
read_state() {
  url=$(read_secret connections DATABASE_URL)
  case $url in
    postgres://bookmarks_a:*) serving=bookmarks_a other=bookmarks_b ;;
    postgres://bookmarks_b:*) serving=bookmarks_b other=bookmarks_a ;;
    *) stop 'the user of DATABASE_URL is neither bookmarks_a nor bookmarks_b' ;;
  esac
  read_secret pgbouncer userlist.txt >"$folder/userlist.txt"
  old=$serving new=$other
  if grep -qxF "$mark$serving" "$folder/userlist.txt"; then old=$other new=$serving; fi
  if grep -qxF "$mark$new" "$folder/userlist.txt"; then
    password=$(sed -n "s/^\"$new\" \"\(.*\)\"\$/\1/p" "$folder/userlist.txt")
    [ -n "$password" ] ||
      stop "userlist.txt of the Secret pgbouncer has no password of $new; restore it, or delete the line '$mark$new'"
    echo "== the last run was interrupted: continuing with $new"
  else
    password=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
  fi
}

# Removes the lines that match a regular expression from PgBouncer's list of users.
forget_users() {
  grep -vE "$1" "$folder/userlist.txt" >"$folder/kept" || true
  mv "$folder/kept" "$folder/userlist.txt"
}

# Marks a rotation in progress: the script adds this line to PgBouncer's Secret, where PgBouncer reads it as a comment.
mark='; k8s/rotate.sh changes over to '
read_admin_url
take_lock
find_cluster
read_state

# After an interruption, PgBouncer may no longer know the old role. In that case, no pod uses that role, and the only
# step left is to lock it.
if [ "$serving" = "$old" ] || grep -q "^\"$old\" " "$folder/userlist.txt"; then
  echo "== $new may log in"
  verifier=$(make_verifier)
  { alter_role "$new" "login password '$verifier'" && pass_to_nodes && check_nodes; } ||
    stop "PgBouncer and the pods were not changed, and $serving serves; fix the fault and run this again"

  echo "== PgBouncer knows both"
  forget_users "^\"$new\" |^$mark"
  printf '"%s" "%s"\n%s\n' "$new" "$password" "$mark$new" >>"$folder/userlist.txt"
  write_secret pgbouncer userlist.txt "$folder/userlist.txt"
  roll pgbouncer

  echo "== the service is $new"
  printf %s "postgres://$new:$password@${url#*@}" >"$folder/url"
  import_url=$(read_secret connections DATABASE_IMPORT_URL)
  printf %s "postgres://$new:$password@${import_url#*@}" >"$folder/import-url"
  write_secret connections DATABASE_URL "$folder/url" DATABASE_IMPORT_URL "$folder/import-url"
  roll api worker

  echo "== PgBouncer forgets $old"
  forget_users "^\"$old\" "
  write_secret pgbouncer userlist.txt "$folder/userlist.txt"
  roll pgbouncer
fi

echo "== $old may not log in any more"
{ alter_role "$old" 'nologin password null' &&
  on_every_node <<<"select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = '$old';"; } ||
  stop "$new serves, but $old may still log in there; fix the fault and run this again"
forget_users "^$mark"
write_secret pgbouncer userlist.txt "$folder/userlist.txt"
echo "rotate: $new serves"
