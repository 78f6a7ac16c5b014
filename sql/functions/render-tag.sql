-- Renders a tag inside a bookmark. This is the only place that does. An update of a sharded database calls only
-- immutable functions. `to_json` is stable, so this uses `json_object`, whose output begins with `{"" : `.
create or replace function render_tag(p_id bigint, p_name text) returns text
language sql immutable as $$
  select '{"id":' || p_id::text || ',"name":' || substr(json_object(array['', p_name])::text, 7)
$$;
