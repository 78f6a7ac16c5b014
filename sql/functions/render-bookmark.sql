-- Renders a bookmark as JSON. Responses contain this text unchanged
-- (docs/decisions/0182-postgres-renders-bookmarks.md). Only `read_trash` renders bookmarks itself. A response to an
-- edit has no `created_at`. If the row comes from a table, the planner inlines this expression. Stored times are whole
-- milliseconds. The added microsecond keeps `to_json` from dropping trailing zeros of the fraction.
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
