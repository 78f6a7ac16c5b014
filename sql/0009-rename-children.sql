-- works-with: 5
-- `rename_tag` takes one more argument, with a default, and replaces the function without it.

drop function if exists rename_tag(bigint, bytea, bigint, text, text, bigint, integer, text, bytea);
