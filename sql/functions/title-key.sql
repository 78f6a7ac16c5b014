-- Returns the sort key of a bookmark for the order `title`. It is the first 200 characters of the normalized title, so
-- that a cursor can hold it.
create or replace function title_key(p_bookmark bookmarks) returns text
language sql immutable as $$
  select left(split_part(p_bookmark.search_text, e'\n', 2), 200)
$$;
