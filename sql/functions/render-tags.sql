-- The tags of a bookmark as they travel, of rendered tags with commas between them; null stands for none.
create or replace function render_tags(p_rendered text) returns text
language sql immutable as $$
  select coalesce('[' || p_rendered || ']', '[]')
$$;
