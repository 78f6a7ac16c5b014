-- Deletes one user's changes that are older than `p_days` days, and returns their number. Readers that have not
-- received these changes must start over. Each call handles one user, because every function that writes the table
-- `changes` must hold the lock on the user's row in `accounts`.
create or replace function sweep_changes(p_days integer) returns bigint
language plpgsql as $$
declare
  v_user_id bigint;
  v_last_old_number bigint;
  v_count bigint;
begin
  -- Find the user with the oldest change. `rows_of_shards` replaces `%s` with the name of a shard. Before that,
  -- `format` turns `%%s` into `%s`.
  select (oldest ->> 'user_id')::bigint into v_user_id
  from rows_of_shards(
    'changes',
    format(
      'select user_id, changed_at from %%s where changed_at < now() - make_interval(days => %s) order by changed_at limit 1',
      p_days
    )
  ) oldest
  order by (oldest ->> 'changed_at')::timestamptz
  limit 1;
  if not found then
    return 0;
  end if;
  perform from accounts where user_id = v_user_id for no key update;
  -- Revisions rise with time. So if a change is old, all changes with smaller numbers are old too.
  select max(number) into v_last_old_number
  from changes
  where user_id = v_user_id and changed_at < now() - make_interval(days => p_days);
  if v_last_old_number is null then
    return 0;
  end if;
  delete from changes where user_id = v_user_id and number <= v_last_old_number;
  get diagnostics v_count = row_count;
  update accounts set changes_floor = greatest(changes_floor, v_last_old_number) where user_id = v_user_id;
  return v_count;
end
$$;
