-- works-with: 12
-- Drops functions whose arguments have changed, so that tags can be renamed and deleted by path.

drop function if exists rename_tag(
  bigint, bytea, bigint, text, text, bigint, integer, text, bytea, boolean
);
drop function if exists delete_tag(bigint, bytea, bigint, bigint, integer, text, bytea);
drop function if exists replace_tag(bigint, bigint, bigint, bigint, integer);
