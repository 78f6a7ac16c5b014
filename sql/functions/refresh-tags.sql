-- Rewrites the stored tags of the next bookmarks of a user that carry stale ones; false once there are none left. It reads
-- `p_walked` bookmarks and writes `p_rewritten` at most, and begins at most ten times a second, however many replicas call
-- it: no writer waits long for the account's lock. Bookmarks look the same before and after.
create or replace function refresh_tags(p_user_id bigint, p_walked integer, p_rewritten integer) returns boolean
language plpgsql set enable_sort = off as $$
declare
  v_stale bigint[];
  v_from bigint;
  v_last bigint;
  v_rows integer;
  v_carrying bigint[];
  v_has_more boolean;
  v_now timestamptz;
begin
  select stale_tags, tags_fresh_to into v_stale, v_from
  from accounts
  where user_id = p_user_id and stale_tags is not null
    and tags_refreshed_at < clock_timestamp() - interval '100 milliseconds'
  for no key update skip locked;
  if not found then
    return exists (select from accounts where user_id = p_user_id and stale_tags is not null);
  end if;

  -- Walked by the key: the index on tags would find all that carry them, each time.
  select max(id), count(*), coalesce(array_agg(id order by id) filter (where tag_ids && v_stale), '{}')
  into v_last, v_rows, v_carrying
  from (
    select id, tag_ids from bookmarks where user_id = p_user_id and id > v_from order by id limit p_walked
  ) walked;
  v_has_more := v_rows = p_walked or cardinality(v_carrying) > p_rewritten;
  if cardinality(v_carrying) > p_rewritten then
    v_carrying := v_carrying[:p_rewritten];
    v_last := v_carrying[p_rewritten];
  end if;
  perform rewrite_tags(p_user_id, v_carrying);

  -- Where the database is sharded, Citus takes no volatile function in an update.
  v_now := clock_timestamp();
  update accounts
  set stale_tags = case when v_has_more then stale_tags end,
    tags_fresh_to = case when v_has_more then v_last else 0 end,
    tags_refreshed_at = v_now
  where user_id = p_user_id;
  return v_has_more;
end
$$;
