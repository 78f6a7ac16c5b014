-- Returns the given url keys for which the user has a bookmark. If the given keys are distinct, the returned keys are
-- distinct too. If the user has many bookmarks and few keys are given, each key is looked up separately, because
-- reading all bookmarks would take longer.
create or replace function known_url_keys(p_user_id bigint, p_url_keys uuid[]) returns uuid[]
language plpgsql stable
  set plan_cache_mode = force_custom_plan
  set enable_seqscan = off
  set enable_bitmapscan = off as $$
begin
  -- Looking up one key takes ten times as long as reading one bookmark. So if many keys are given, one statement reads
  -- all bookmarks of the user. Postgres plans that statement for the given array, and puts the array into a hash table.
  if (select bookmark_count from accounts where user_id = p_user_id) <= 10 * cardinality(p_url_keys) then
    return array(
      select distinct url_key
      from bookmarks
      where user_id = p_user_id and url_key = any (p_url_keys)
    );
  end if;
  return array(
    select saved.url_key
    -- The keys are looked up in ascending order, because neighboring keys are often on the same page of the index.
    from (
      select url_key
      from unnest(p_url_keys) as requested (url_key)
      order by url_key
    ) ascending
    cross join lateral (
      select b.url_key
      from bookmarks b
      where b.user_id = p_user_id and b.url_key = ascending.url_key
      limit 1
    ) saved
  );
end
$$;
