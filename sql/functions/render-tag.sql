-- Renders a tag inside a bookmark. It must be immutable, because an update of a sharded database may call only
-- immutable functions. `to_json` is only stable, so it uses `json_object`, whose output here begins with `{"" : `.
create or replace function render_tag(p_id bigint, p_name text) returns text
language sql immutable as $$
  select '{"id":' || p_id::text || ',"name":' || substr(json_object(array['', p_name])::text, 7)
$$;
