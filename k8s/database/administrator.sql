-- Creates the roles and the database. Run this script once with psql 15 or newer, as a role that may create roles and
-- databases. On a managed Postgres that role is the administrator, who is not a superuser. The grants to current_user
-- let the administrator give the database to its owner, and let k8s/rotate.sh end sessions. If the script stops
-- halfway, run it again: it keeps the roles and the database that exist.
--   OWNER_PASSWORD=… SERVING_PASSWORD=… psql "$ADMIN_DATABASE_URL" --set=ON_ERROR_STOP=1 --file=k8s/database/administrator.sql
\getenv owner_password OWNER_PASSWORD
\getenv serving_password SERVING_PASSWORD
-- This role owns the tables and runs migrations.
select format('create role bookmarks_owner login password %L', :'owner_password')
where to_regrole('bookmarks_owner') is null \gexec
grant bookmarks_owner to current_user;
select 'create database bookmarks owner bookmarks_owner encoding ''UTF8'' locale ''C'' template template0'
where not exists (select from pg_database where datname = 'bookmarks') \gexec
select 'create role bookmarks_serving nologin'
where to_regrole('bookmarks_serving') is null \gexec
-- The service connects as bookmarks_a or as bookmarks_b. k8s/rotate.sh changes from one to the other.
select format('create role bookmarks_a login password %L in role bookmarks_serving', :'serving_password')
where to_regrole('bookmarks_a') is null \gexec
select 'create role bookmarks_b nologin in role bookmarks_serving'
where to_regrole('bookmarks_b') is null \gexec
-- This role only reads. Backups use it.
select 'create role bookmarks_backup nologin'
where to_regrole('bookmarks_backup') is null \gexec
grant bookmarks_a, bookmarks_b to current_user;
