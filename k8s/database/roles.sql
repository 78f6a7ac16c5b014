-- The rights of those who serve: they read and write rows and own nothing. Run as the owner of the database, before the first
-- migration and after a restore; it may be run any number of times:
--   psql "$MIGRATE_DATABASE_URL" --set=ON_ERROR_STOP=1 --file=k8s/database/roles.sql
-- Before, once, as a role that may create roles and databases (on a managed Postgres its administrator, who is no superuser:
-- the grants let it give the database to its owner, and let k8s/rotate.sh end sessions):
--   create role bookmarks_owner login password '…';
--   grant bookmarks_owner to current_user;
--   create database bookmarks owner bookmarks_owner encoding 'UTF8' locale 'C' template template0;
--   create role bookmarks_serving nologin;
--   create role bookmarks_a login password '…' in role bookmarks_serving;
--   create role bookmarks_b nologin in role bookmarks_serving;
--   grant bookmarks_a, bookmarks_b to current_user;
-- Of bookmarks_a and bookmarks_b one serves; k8s/rotate.sh changes over to the other.
begin;
grant usage on schema public to bookmarks_serving;
grant select, insert, update, delete on all tables in schema public to bookmarks_serving;
grant usage on all sequences in schema public to bookmarks_serving;
-- And on what later migrations make.
alter default privileges in schema public grant select, insert, update, delete on tables to bookmarks_serving;
alter default privileges in schema public grant usage on sequences to bookmarks_serving;
commit;
