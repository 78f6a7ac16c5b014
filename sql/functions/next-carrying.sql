-- Returns a batch of bookmarks that have any of these tags, and whether more such bookmarks follow. The batch holds the
-- next ids above `p_after`, in ascending order. `p_work` limits the work of the batch. The work of a bookmark is four
-- plus its number of tags, because an update of a bookmark also writes an index entry for each tag. For each bookmark,
-- `work_before` is the total work of the bookmarks before it.
create or replace function next_carrying(
  p_user_id bigint, p_tag_ids bigint[], p_after bigint, p_work integer, out ids bigint[], out has_more boolean
)
-- The function changes `enable_sort` and `enable_bitmapscan`. Because of the `set` clauses, Postgres restores both when
-- the function ends.
language plpgsql stable set plan_cache_mode = force_custom_plan set enable_sort = on set enable_bitmapscan = on as $$
begin
  -- If few bookmarks have the tags, each call finds all these bookmarks by the index on `tag_ids`. Otherwise it is
  -- cheaper to read the bookmarks in the order of their key until the batch is full.
  if cardinality(p_tag_ids) <= 100
    and (select sum(bookmark_count) from tags where user_id = p_user_id and id = any (p_tag_ids)) <= 10000 then
    select coalesce(array_agg(id order by id) filter (where work_before < p_work), '{}'),
      coalesce(bool_or(work_before >= p_work), false)
    into ids, has_more
    from (
      select id,
        sum(4 + cardinality(tag_ids)) over (order by id rows unbounded preceding) - 4 - cardinality(tag_ids) as work_before
      from bookmarks
      where user_id = p_user_id and id > p_after and tag_ids && p_tag_ids
    ) carrying;
    return;
  end if;
  -- Without sorts and bitmap scans, Postgres must read in the order of the key.
  perform set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true);
  select coalesce(array_agg(id) filter (where work_before < p_work), '{}'),
    coalesce(bool_or(work_before >= p_work), false)
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
      -- The work of a bookmark is at least five, because it has a tag. So a batch never needs more bookmarks than this.
      limit p_work / 5 + 1
    ) first_bookmarks
  ) carrying;
end
$$;
