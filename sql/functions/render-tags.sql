-- Renders the tags of a bookmark as a JSON array. `p_rendered` holds the tags as JSON texts separated by commas; it is
-- null if the bookmark has none.
create or replace function render_tags(p_rendered text) returns text
language sql immutable as $$
  select coalesce('[' || p_rendered || ']', '[]')
$$;
