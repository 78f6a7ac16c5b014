-- Returns the names of all tags that these bookmarks in the trash have, without duplicates.
create or replace function tag_names_in_trash(p_user_id bigint, p_ids bigint[]) returns text[]
language plpgsql stable as $$
declare
  v_tags text[] := array(select bookmark ->> 'tags' from trash where user_id = p_user_id and id = any (p_ids));
begin
  return array(
    select distinct tag ->> 'name'
    from unnest(v_tags) as list (tags)
    cross join lateral json_array_elements(list.tags::json) tag
  );
end
$$;
