#!/usr/bin/env bash
# What the CronJob runs: scheduled.sh FOLDER KEEP makes a backup there that has its time as its name, reads it through, and
# then takes away all but the KEEP newest. DATABASE_URL as backup.sh has it.
set -euo pipefail
folder=$1
keep=$2
# What was broken off before.
rm -rf "$folder"/*.part
file="$folder/bookmarks-$(date -u +%Y%m%dT%H%M%SZ).dump"
bash "$(dirname "$0")/backup.sh" "$file"
# Every row of it, as a restore would read it.
pg_restore --file=/dev/null "$file"
find "$folder" -maxdepth 1 -name 'bookmarks-*.dump' | sort --reverse | tail -n "+$((keep + 1))" | xargs -r rm -r --
echo "backups: $(find "$folder" -maxdepth 1 -name 'bookmarks-*.dump' | wc -l)"
