-- Renders a bookmark. This is the only place that does. A response to an edit has no `created_at`. The planner inlines
-- this expression where the row is a table's. Stored times are whole milliseconds, and the added microsecond keeps
-- `to_json` from dropping trailing zeros of the fraction. Whole responses are built here and passed through
-- (docs/decisions/0182-postgres-renders-bookmarks.md).
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
