-- The sort key of bookmarks for the order `title`: the first 200 characters of the folded title, so that a cursor can
-- hold it.
create or replace function title_key(p_bookmark bookmarks) returns text
language sql immutable as $$
  select left(split_part(p_bookmark.search_text, e'\n', 2), 200)
$$;
