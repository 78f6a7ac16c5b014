-- Renders a tag as JSON text, as bookmarks show it.
--
-- An update of a distributed table may call only immutable functions, and `to_json` is only stable. So `json_object`
-- escapes the name, and returns `{"" : "name"}`. `substr` keeps the part from the name to the closing brace.
create or replace function render_tag(p_id bigint, p_name text) returns text
language sql immutable as $$
  select '{"id":' || p_id::text || ',"name":' || substr(json_object(array['', p_name])::text, 7)
$$;
