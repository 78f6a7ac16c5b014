-- A tag inside a bookmark as it travels: the only place that writes one. An UPDATE of a sharded database calls immutable
-- functions only, and `to_json` is stable: `json_object` is not. What it writes begins with `{"" : `.
create or replace function render_tag(p_id bigint, p_name text) returns text
language sql immutable as $$
  select '{"id":' || p_id::text || ',"name":' || substr(json_object(array['', p_name])::text, 7)
$$;
