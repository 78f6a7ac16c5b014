-- A lower limit for the bytes of a rendered bookmark: JSON escapes can make it longer. Computing it does not fetch
-- text that is stored outside of the row.
create or replace function bookmark_bytes(p_bookmark bookmarks) returns integer
language sql immutable as $$
  select 140 + octet_length(p_bookmark.url) + octet_length(p_bookmark.title) + octet_length(p_bookmark.comment)
    + octet_length(p_bookmark.tags)
$$;
