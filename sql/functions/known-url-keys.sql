-- Which of these keys of urls the user's bookmarks have. Each is looked up by itself: a join, or an array that is compared
-- with, may go through all that the user has, once for every few thousand entries of an import.
create or replace function known_url_keys(p_user_id bigint, p_url_keys uuid[]) returns uuid[]
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return array(
    select known.url_key
    from unnest(p_url_keys) as wanted (url_key)
    cross join lateral (
      select b.url_key from bookmarks b where b.user_id = p_user_id and b.url_key = wanted.url_key limit 1
    ) known
  );
end
$$;
