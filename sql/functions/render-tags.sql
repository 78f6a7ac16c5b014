-- Renders the tags of a bookmark from rendered tags with commas between them. Null means that there are none.
create or replace function render_tags(p_rendered text) returns text
language sql immutable as $$
  select coalesce('[' || p_rendered || ']', '[]')
$$;
