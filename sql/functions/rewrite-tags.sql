-- Writes the tags of bookmarks as they are now; ids whose tag was deleted go. What is as it has to be is not written
-- again. Under the account's lock only. Every join has to follow the keys: where statistics make a user's bookmarks few,
-- others would read whole tables.
create or replace function rewrite_tags(p_user_id bigint, p_bookmark_ids bigint[]) returns void
language plpgsql set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
begin
  update bookmarks b
  set tag_ids = fresh.tag_ids, tags = fresh.tags
  from (
    select carrying.id,
      coalesce(array_agg(t.id) filter (where t.id is not null), '{}') as tag_ids,
      render_tags(string_agg(render_tag(t.id, t.name), ',' order by t.name_key)) as tags
    from bookmarks carrying
    cross join unnest(carrying.tag_ids) as carried (tag_id)
    left join tags t on t.user_id = p_user_id and t.id = carried.tag_id
    where carrying.user_id = p_user_id and carrying.id = any (p_bookmark_ids)
    group by carrying.id
  ) fresh
  where b.user_id = p_user_id and b.id = fresh.id and b.tags <> fresh.tags;
end
$$;
