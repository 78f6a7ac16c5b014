#!/usr/bin/env bash
# Backs up the database of a running service: k8s/backups/backup.sh FILE
# DATABASE_URL must lead directly to Postgres, not through PgBouncer. The role in this URL is either bookmarks_backup
# (which may only read) or the owner of the tables. pg_dump must have the server's version or a newer one.
set -euo pipefail
file=$1
: "${DATABASE_URL:?directly to Postgres, as bookmarks_backup or as the owner of the tables}"
jobs=${JOBS:-1}
# pg_dump can run several jobs only if the backup is a folder.
if [ "$jobs" -gt 1 ]; then format=(--format=directory "--jobs=$jobs"); else format=(--format=custom); fi
rm -rf "$file.part"
# Leaves out the bodies of imports. By the time the backup is restored, the requests of the imports that were in progress
# during the dump have failed. So the restored database must not run these imports. Without its body, a worker refuses an
# import. A dump that fails leaves only a file or folder whose name ends in .part.
pg_dump "${format[@]}" --exclude-table-data=import_chunks --exclude-table-data=import_batches \
  --file="$file.part" --dbname="$DATABASE_URL"
mv "$file.part" "$file"
echo "backup: $file"
