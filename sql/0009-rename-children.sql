-- works-with: 5
-- This version gives `rename_tag` one more argument. Postgres treats the new `rename_tag` as a second function with
-- the same name, so this migration drops the old one.

drop function if exists rename_tag(bigint, bytea, bigint, text, text, bigint, integer, text, bytea);
