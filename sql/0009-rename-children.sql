-- works-with: 5
-- `rename_tag` takes one more argument, with a default. This drops the function without it, which would
-- otherwise remain.

drop function if exists rename_tag(bigint, bytea, bigint, text, text, bigint, integer, text, bytea);
