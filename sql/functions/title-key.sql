-- What bookmarks are sorted by where a search asks for `title`: the folded title's first 200 characters, so that a cursor can
-- hold them.
create or replace function title_key(p_bookmark bookmarks) returns text
language sql immutable as $$
  select left(split_part(p_bookmark.search_text, e'\n', 2), 200)
$$;
