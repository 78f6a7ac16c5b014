-- works-with: 5
-- `rename_tag` has one more argument since this version. Postgres treats the new `rename_tag` as a second function with
-- the same name, so this migration drops the old one.

drop function if exists rename_tag(bigint, bytea, bigint, text, text, bigint, integer, text, bytea);
