-- Deletes at most 1,000 of one user's bookmarks that were moved to the trash more than `p_days` days ago, and returns
-- their number. Each call handles one user, because every function that writes the table `trash` must hold the lock on
-- the user's row in `accounts`.
create or replace function sweep_trash(p_days integer) returns bigint
language plpgsql as $$
declare
  v_user_id bigint;
  v_ids bigint[];
begin
  select (oldest ->> 'user_id')::bigint into v_user_id
  from rows_of_shards(
    'trash',
    format(
      'select user_id, deleted_at from %%s where deleted_at < now() - make_interval(days => %s) order by deleted_at limit 1',
      p_days
    )
  ) oldest
  order by (oldest ->> 'deleted_at')::timestamptz
  limit 1;
  if not found then
    return 0;
  end if;
  perform from accounts where user_id = v_user_id for no key update;
  v_ids := array(
    select id
    from trash
    where user_id = v_user_id and deleted_at < now() - make_interval(days => p_days)
    order by deleted_at, id
    limit 1000
  );
  delete from trash where user_id = v_user_id and id = any (v_ids);
  update accounts set trash_count = trash_count - cardinality(v_ids) where user_id = v_user_id;
  return cardinality(v_ids);
end
$$;
