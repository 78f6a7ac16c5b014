-- works-with: 11
-- Drops functions whose arguments have changed, so that a deletion can be permanent.

drop function if exists delete_bookmark(bigint, bytea, bigint, timestamptz, bigint, text, bytea);
drop function if exists delete_bookmarks(bigint, bytea, bigint[], timestamptz[], bigint, text, bytea);
drop function if exists move_to_trash(bigint, bigint[], bigint);
drop function if exists import_bookmarks(
  bigint, bytea, uuid, uuid, boolean, integer, uuid[], text[], bytea, text, text[], text[], bigint, bigint, integer,
  text, bytea
);
