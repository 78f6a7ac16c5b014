#!/usr/bin/env bash
# The CronJob runs this: scheduled.sh FOLDER KEEP
# Makes a backup with the time in its name, and reads the whole backup to check it. Then deletes all but the KEEP newest
# backups. DATABASE_URL is the same as for backup.sh.
set -euo pipefail
folder=$1
keep=$2
# Deletes the incomplete backups of failed runs.
rm -rf "$folder"/*.part
file="$folder/bookmarks-$(date -u +%Y%m%dT%H%M%SZ).dump"
bash "$(dirname "$0")/backup.sh" "$file"
# Reads every row of the backup, as a restore does.
pg_restore --file=/dev/null "$file"
find "$folder" -maxdepth 1 -name 'bookmarks-*.dump' | sort --reverse | tail -n "+$((keep + 1))" | xargs -r rm -r --
echo "backups: $(find "$folder" -maxdepth 1 -name 'bookmarks-*.dump' | wc -l)"
