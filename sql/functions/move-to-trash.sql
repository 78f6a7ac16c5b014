-- Copies the bookmarks with the ids `p_ids` to the trash, or all bookmarks of the user if `p_ids` is null. The caller
-- deletes the bookmarks afterwards. The limit of the trash is `p_trash_limit` bookmarks, or 100,000 for a premium
-- account. If the trash exceeds the limit with the copies, the function removes the bookmarks that have been in the
-- trash longest. One call removes at most 1,000 bookmarks more than it copies, so that a call stays short. The caller
-- must hold the lock on the account's row.
create or replace function move_to_trash(p_user_id bigint, p_ids bigint[], p_trash_limit bigint) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_limit bigint;
  v_trash_count bigint;
  v_bookmark_count bigint;
  v_copied_count bigint;
  v_surplus bigint;
  v_after_id bigint;
  v_last_at timestamptz;
  v_last_id bigint;
  v_now timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
  select case when is_premium then limit_of('premium_trash') else p_trash_limit end, trash_count, bookmark_count
  into v_limit, v_trash_count, v_bookmark_count
  from accounts
  where user_id = p_user_id;
  if p_ids is null then
    -- If the trash cannot hold all bookmarks, only those with the highest ids are copied.
    if v_bookmark_count > v_limit then
      select id into v_after_id from bookmarks where user_id = p_user_id order by id desc offset v_limit limit 1;
    end if;
    insert into trash (user_id, id, deleted_at, bookmark)
    select b.user_id, b.id, v_now, to_jsonb(row(b.*)::bookmarks)
    from bookmarks b
    where b.user_id = p_user_id and b.id > coalesce(v_after_id, 0);
  else
    insert into trash (user_id, id, deleted_at, bookmark)
    select b.user_id, b.id, v_now, to_jsonb(row(b.*)::bookmarks)
    from bookmarks b
    where b.user_id = p_user_id and b.id = any (p_ids);
  end if;
  get diagnostics v_copied_count = row_count;
  v_surplus := least(v_trash_count + v_copied_count - v_limit, v_copied_count + 1000);
  if v_surplus > 0 then
    -- Find the newest of the bookmarks to remove from the trash.
    select deleted_at, id into v_last_at, v_last_id
    from trash
    where user_id = p_user_id
    order by deleted_at, id
    offset v_surplus - 1
    limit 1;
    delete from trash where user_id = p_user_id and (deleted_at, id) <= (v_last_at, v_last_id);
  end if;
  update accounts set trash_count = trash_count + v_copied_count - greatest(v_surplus, 0) where user_id = p_user_id;
end
$$;
