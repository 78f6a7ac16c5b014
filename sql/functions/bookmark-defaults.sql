-- Returns a bookmark with the defaults of all fields that have one. JSON of a bookmark is read with this row, so that a
-- field that the JSON lacks gets its default. Replicas of the previous release do not send new fields, and bookmarks that
-- were moved to the trash earlier lack them too.
--
-- The result is the same in every call, so Postgres calls this function only when it plans a statement.
create or replace function bookmark_defaults() returns bookmarks
language sql immutable as $$
  select jsonb_populate_record(null::bookmarks, '{"host":"","title":"","comment":""}')
$$;
