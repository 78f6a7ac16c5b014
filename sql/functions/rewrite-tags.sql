-- Renders the tags of the next bookmarks after an id that carry any of these tags. Returns the id that the next step begins
-- after, or null after the last bookmark. Rows that are already correct are skipped. Under the account's lock only.
create or replace function rewrite_tags(p_user_id bigint, p_tag_ids bigint[], p_after bigint, p_work integer) returns bigint
-- Where statistics make a user's bookmarks few, other joins would read whole tables.
language plpgsql set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  v_next record;
begin
  v_next := next_carrying(p_user_id, p_tag_ids, p_after, p_work);
  update bookmarks b
  set tags = fresh.tags
  from (
    select carrying.id, render_tags(string_agg(render_tag(t.id, t.name), ',' order by t.name_key)) as tags
    from bookmarks carrying
    cross join unnest(carrying.tag_ids) as carried (tag_id)
    join tags t on t.user_id = p_user_id and t.id = carried.tag_id
    where carrying.user_id = p_user_id and carrying.id = any (v_next.ids)
    group by carrying.id
  ) fresh
  where b.user_id = p_user_id and b.id = fresh.id and b.tags <> fresh.tags;
  return case when v_next.has_more then v_next.ids[cardinality(v_next.ids)] end;
end
$$;
