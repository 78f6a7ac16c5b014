-- Renders the tags of a bookmark. `p_rendered` holds its rendered tags with commas between; null if it has none.
create or replace function render_tags(p_rendered text) returns text
language sql immutable as $$
  select coalesce('[' || p_rendered || ']', '[]')
$$;
