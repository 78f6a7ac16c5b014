#!/usr/bin/env bash
# Changes the role with which the service comes to Postgres, under load: k8s/rotate.sh, with ADMIN_DATABASE_URL straight to
# Postgres as a role that may alter bookmarks_a and bookmarks_b. Of the two one serves; the other gets a new password, serves
# from here on, and the first loses its login. Stopped anywhere, it may be run again.
set -euo pipefail
: "${ADMIN_DATABASE_URL:?straight to Postgres, as a role that may alter roles}"
namespace=${NAMESPACE:-bookmarks}
roll_out_limit=${ROLL_OUT_LIMIT:-20m}
in_namespace() { kubectl --namespace "$namespace" "$@"; }
run_sql() { psql --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --dbname="$ADMIN_DATABASE_URL"; }
read_secret() { in_namespace get secret "$1" --output "go-template={{index .data \"$2\" | base64decode}}"; }

# Writes keys of a Secret, as pairs of a key and a file with its value; the other keys stay.
write_secret() {
  local name=$1 data=''
  shift
  while [ $# -gt 0 ]; do
    data="$data${data:+,}\"$1\":\"$(base64 <"$2" | tr -d '\n')\""
    shift 2
  done
  in_namespace patch secret "$name" --patch "{\"data\":{$data}}"
}

roll() {
  for deployment in "$@"; do in_namespace rollout restart "deployment/$deployment"; done
  for deployment in "$@"; do in_namespace rollout status "deployment/$deployment" --timeout="$roll_out_limit"; done
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
umask 077

url=$(read_secret connections DATABASE_URL)
case $url in
  postgres://bookmarks_a:*) old=bookmarks_a new=bookmarks_b ;;
  postgres://bookmarks_b:*) old=bookmarks_b new=bookmarks_a ;;
  *) echo 'rotate: DATABASE_URL is neither of bookmarks_a nor of bookmarks_b' >&2 && exit 1 ;;
esac
password=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')

echo "== $new may log in"
run_sql <<<"alter role $new login password '$password';"

echo "== PgBouncer knows both"
read_secret pgbouncer userlist.txt | { grep -v "^\"$new\" " || true; } >"$folder/userlist.txt"
echo "\"$new\" \"$password\"" >>"$folder/userlist.txt"
write_secret pgbouncer userlist.txt "$folder/userlist.txt"
roll pgbouncer

echo "== the service is $new"
printf %s "$url" | sed "s|^postgres://[^@]*@|postgres://$new:$password@|" >"$folder/url"
read_secret connections DATABASE_IMPORT_URL | sed "s|^postgres://[^@]*@|postgres://$new:$password@|" >"$folder/import-url"
write_secret connections DATABASE_URL "$folder/url" DATABASE_IMPORT_URL "$folder/import-url"
roll api worker

echo "== $old may not log in any more"
read_secret pgbouncer userlist.txt | grep -v "^\"$old\" " >"$folder/userlist.txt"
write_secret pgbouncer userlist.txt "$folder/userlist.txt"
roll pgbouncer
run_sql <<EOS
alter role $old nologin password null;
select pg_terminate_backend(pid) from pg_stat_activity where usename = '$old';
EOS
echo "rotate: $new serves"
