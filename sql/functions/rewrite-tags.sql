-- Renders the tags of the next bookmarks after an id that carry any of these tags. Returns the id after which the next
-- step begins, or null after the last bookmark. Requires the account's lock.
create or replace function rewrite_tags(p_user_id bigint, p_tag_ids bigint[], p_after bigint, p_work integer) returns bigint
language plpgsql as $$
declare
  v_next record;
begin
  v_next := next_carrying(p_user_id, p_tag_ids, p_after, p_work);
  update bookmarks b
  set tags = (
    select render_tags(string_agg(render_tag(t.id, t.name), ',' order by t.name_key))
    from tags t
    where t.user_id = p_user_id and t.id = any (b.tag_ids)
  )
  where user_id = p_user_id and id = any (v_next.ids);
  return case when v_next.has_more then v_next.ids[cardinality(v_next.ids)] end;
end
$$;
