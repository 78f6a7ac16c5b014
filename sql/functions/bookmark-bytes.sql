-- How many bytes a bookmark has as it travels, at least: JSON writes some characters as two to six. Text that is stored
-- outside of its row is not fetched for it.
create or replace function bookmark_bytes(p_bookmark bookmarks) returns integer
language sql immutable as $$
  select 140 + octet_length(p_bookmark.url) + octet_length(p_bookmark.title) + octet_length(p_bookmark.comment)
    + octet_length(p_bookmark.tags)
$$;
