-- A tag inside a bookmark as it travels: the only place that writes one.
create or replace function render_tag(p_id bigint, p_name text) returns text
language sql stable as $$
  select '{"id":' || p_id || ',"name":' || to_json(p_name) || '}'
$$;
