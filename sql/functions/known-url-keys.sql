-- Returns which of these url keys the user's bookmarks have, without duplicates if the given keys are distinct. For
-- few keys and many bookmarks, each key is looked up separately, because reading all bookmarks would take longer.
create or replace function known_url_keys(p_user_id bigint, p_url_keys uuid[]) returns uuid[]
language plpgsql stable
  set plan_cache_mode = force_custom_plan
  set enable_seqscan = off
  set enable_bitmapscan = off as $$
begin
  -- Looking up a key takes ten times as long as reading a bookmark. Postgres plans this statement for the given array.
  -- It puts the array into a hash table, and looks up the key of every bookmark there.
  if (select bookmark_count from accounts where user_id = p_user_id) <= 10 * cardinality(p_url_keys) then
    return array(
      select distinct url_key
      from bookmarks
      where user_id = p_user_id and url_key = any (p_url_keys)
    );
  end if;
  return array(
    select known.url_key
    -- Sorted, because keys that are close in the index are often on the same page.
    from (
      select url_key
      from unnest(p_url_keys) as wanted (url_key)
      order by url_key
    ) wanted
    cross join lateral (
      select b.url_key
      from bookmarks b
      where b.user_id = p_user_id and b.url_key = wanted.url_key
      limit 1
    ) known
  );
end
$$;
