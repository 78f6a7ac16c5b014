-- Renders a bookmark as JSON text, which responses contain unchanged. With `p_is_edit`, the text has no `created_at`, as
-- in the response to an edit.
--
-- If the argument is a row of a table or a row constructor, the planner replaces the call with the expression below.
-- Record 0182 compares this with other ways to render (docs/decisions/0182-postgres-renders-bookmarks.md).
--
-- Times are stored in whole milliseconds, and `to_json` drops trailing zeros of a fraction. So the expression adds a
-- microsecond before `to_json`. Then it keeps the first 24 characters: the opening quote and the time up to its
-- milliseconds.
create or replace function render_bookmark(p_bookmark bookmarks, p_is_edit boolean default false) returns text
language sql stable as $$
  select '{"id":' || p_bookmark.id
    || ',"url":' || to_json(p_bookmark.url)
    || ',"title":' || to_json(p_bookmark.title)
    || ',"comment":' || to_json(p_bookmark.comment)
    || ',"tags":' || p_bookmark.tags
    || case
      when p_is_edit then ''
      else ',"created_at":'
        || left(to_json(p_bookmark.created_at at time zone 'UTC' + interval '1 microsecond')::text, 24) || 'Z"'
    end
    || ',"updated_at":'
    || left(to_json(p_bookmark.updated_at at time zone 'UTC' + interval '1 microsecond')::text, 24) || 'Z"}'
$$;
