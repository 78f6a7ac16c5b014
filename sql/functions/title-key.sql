-- Returns the sort key of a bookmark for the order `title`: its normalized title or, without a title, its address as
-- programs show it. It is cut to 200 characters, so that a cursor can hold it.
create or replace function title_key(p_bookmark bookmarks) returns text
language sql immutable as $$
  -- The first line of the search text is the normalized url, and the second line is the normalized title.
  select left(
    coalesce(
      nullif(split_part(p_bookmark.search_text, e'\n', 2), ''),
      regexp_replace(split_part(p_bookmark.search_text, e'\n', 1), '^https?://(www\.)?', '')
    ),
    200
  )
$$;
