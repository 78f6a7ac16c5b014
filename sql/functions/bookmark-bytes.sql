-- Returns the least number of bytes that the JSON text of a bookmark can have. The text may be longer, because JSON
-- escapes some characters. The call is cheap: `octet_length` does not fetch texts that are stored outside of the row.
create or replace function bookmark_bytes(p_bookmark bookmarks) returns integer
language sql immutable as $$
  -- 140 bytes are the id, the times and the names of the fields.
  select 140 + octet_length(p_bookmark.url) + octet_length(p_bookmark.title) + octet_length(p_bookmark.comment)
    + octet_length(p_bookmark.tags)
$$;
