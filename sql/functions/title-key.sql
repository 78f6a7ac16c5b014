-- Returns the sort key of a bookmark for the order `title`: its normalized title. It is cut to 200 characters, so that
-- a cursor can hold it.
create or replace function title_key(p_bookmark bookmarks) returns text
language sql immutable as $$
  -- The second line of the search text is the normalized title.
  select left(split_part(p_bookmark.search_text, e'\n', 2), 200)
$$;
