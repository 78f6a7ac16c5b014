-- Returns the next bookmarks after an id that carry any of these tags, by ascending id, and whether more follow.
-- `p_work` limits a batch. It is counted in entries of the index of tags, because these take most of the time of an
-- update. A bookmark with 100 tags counts as 104.
create or replace function next_carrying(
  p_user_id bigint, p_tag_ids bigint[], p_after bigint, p_work integer, out ids bigint[], out has_more boolean
)
-- Settings made inside the function end with it.
language plpgsql stable set plan_cache_mode = force_custom_plan set enable_sort = on set enable_bitmapscan = on as $$
begin
  -- If few bookmarks carry the tags, the index of tags finds all of them in every batch. If many do, walking along
  -- the key is cheaper. The walk compares each bookmark with every tag, so it looks up a long list of tags in a hash
  -- table.
  if cardinality(p_tag_ids) <= 100
    and (select sum(bookmark_count) from tags where user_id = p_user_id and id = any (p_tag_ids)) <= 10000 then
    select coalesce(array_agg(id order by id) filter (where work_before < p_work), '{}'), coalesce(bool_or(work_before >= p_work), false)
    into ids, has_more
    from (
      select id,
        sum(4 + cardinality(tag_ids)) over (order by id rows unbounded preceding) - 4 - cardinality(tag_ids) as work_before
      from bookmarks
      where user_id = p_user_id and id > p_after and tag_ids && p_tag_ids
    ) carrying;
    return;
  end if;
  perform set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true);
  select coalesce(array_agg(id) filter (where work_before < p_work), '{}'), coalesce(bool_or(work_before >= p_work), false)
  into ids, has_more
  from (
    select id,
      sum(4 + cardinality(tag_ids)) over (order by id rows unbounded preceding) - 4 - cardinality(tag_ids) as work_before
    from (
      select id, tag_ids
      from bookmarks
      where user_id = p_user_id and id > p_after
        and exists (select from unnest(tag_ids) as carried (tag_id) where carried.tag_id = any (p_tag_ids))
      order by id
      -- a bookmark counts as at least five
      limit p_work / 5 + 1
    ) walked
  ) carrying;
end
$$;
