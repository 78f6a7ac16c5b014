#!/usr/bin/env bash
# Backs up the database of a running service: k8s/backups/backup.sh FILE, with DATABASE_URL straight to Postgres (not through
# PgBouncer) as bookmarks_backup, who reads, or as the owner of the tables. pg_dump of the server's version or a newer one.
set -euo pipefail
file=$1
: "${DATABASE_URL:?straight to Postgres, as bookmarks_backup or as the owner of the tables}"
jobs=${JOBS:-1}
# With several jobs the backup is a folder, which may be restored by several as well.
if [ "$jobs" -gt 1 ]; then format=(--format=directory "--jobs=$jobs"); else format=(--format=custom); fi
rm -rf "$file.part"
# Imports under way are left out: a client may have been told that one failed, and it would run again. A dump that breaks off
# leaves no file that looks whole.
pg_dump "${format[@]}" --exclude-table-data=imports --exclude-table-data=import_chunks \
  --exclude-table-data=import_pieces --exclude-table-data=import_errors --file="$file.part" --dbname="$DATABASE_URL"
mv "$file.part" "$file"
echo "backup: $file"
