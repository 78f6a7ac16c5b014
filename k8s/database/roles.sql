-- Grants rights: the serving roles read and write rows and own nothing; the backup role reads. Run this script as the
-- owner of the database: after administrator.sql but before the first migration, and again after a restore. You can
-- run it again at any time.
--   psql "$MIGRATE_DATABASE_URL" --set=ON_ERROR_STOP=1 --file=k8s/database/roles.sql
begin;
grant usage on schema public to bookmarks_serving, bookmarks_backup;
grant select, insert, update, delete on all tables in schema public to bookmarks_serving;
grant usage on all sequences in schema public to bookmarks_serving;
grant select on all tables in schema public to bookmarks_backup;
grant select on all sequences in schema public to bookmarks_backup;
-- Grants the same rights on tables and sequences that later migrations create.
alter default privileges in schema public grant select, insert, update, delete on tables to bookmarks_serving;
alter default privileges in schema public grant usage on sequences to bookmarks_serving;
alter default privileges in schema public grant select on tables to bookmarks_backup;
alter default privileges in schema public grant select on sequences to bookmarks_backup;
commit;
