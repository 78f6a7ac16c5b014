-- The tags of a bookmark as they travel, as they are now. Of ids whose tag was deleted nothing is shown.
create or replace function current_tags(p_user_id bigint, p_tag_ids bigint[]) returns text
-- plpgsql keeps its plan; a function in SQL would be planned anew for each bookmark
language plpgsql stable as $$
begin
  return (
    select render_tags(string_agg(render_tag(id, name), ',' order by name_key))
    from tags
    where user_id = p_user_id and id = any (p_tag_ids)
  );
end
$$;
