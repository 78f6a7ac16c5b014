-- Deletes at most `p_limit` responses of one user that are older than 24 hours, and returns their number. Each call
-- handles one user, because every function that writes the table `idempotency_keys` must hold the lock on the user's
-- row in `accounts`. A call does not wait for locks: locked rows stay for the next sweep.
create or replace function sweep_responses(p_limit integer) returns bigint
language plpgsql as $$
declare
  v_user_id bigint;
  v_keys text[];
begin
  select (oldest ->> 'user_id')::bigint into v_user_id
  from rows_of_shards(
    'idempotency_keys',
    $q$
      select user_id, created_at from %s where created_at < now() - interval '24 hours' order by created_at limit 1
    $q$
  ) oldest
  order by (oldest ->> 'created_at')::timestamptz
  limit 1;
  if not found then
    return 0;
  end if;
  perform from accounts where user_id = v_user_id for no key update skip locked;
  if not found then
    return 0;
  end if;
  v_keys := array(
    select key
    from idempotency_keys
    where user_id = v_user_id and created_at < now() - interval '24 hours'
    limit p_limit
    for update skip locked
  );
  perform forget_responses(v_user_id, v_keys);
  return cardinality(v_keys);
end
$$;
