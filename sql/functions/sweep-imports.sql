-- Deletes imports that ended more than an hour ago, uploads that received nothing for more than a minute, and imports
-- that waited in the queue for more than a day. Deletes at most `p_limit` of them in each shard, and returns their
-- number.
create or replace function sweep_imports(p_limit integer) returns bigint
language plpgsql as $$
declare
  v_user record;
  v_count bigint;
  v_deleted bigint := 0;
begin
  -- The second condition on `touched_at` implies the first one. The first one lets Postgres use an index.
  for v_user in
    select (old ->> 'user_id')::bigint as id, array_agg((old ->> 'id')::uuid) as imports
    from rows_of_shards(
      'imports',
      $q$
        select user_id, id
        from %s
        where touched_at < now() - interval '1 minute'
          and touched_at < now() - case
            when state = 'receiving' then interval '1 minute'
            when state = 'queued' then interval '1 day'
            else interval '1 hour'
          end
        limit $q$ || p_limit
    ) old
    group by 1
  loop
    -- An import that was found above is kept if its `touched_at` was set meanwhile.
    delete from imports
    where user_id = v_user.id and id = any (v_user.imports) and touched_at < now() - interval '1 minute';
    get diagnostics v_count = row_count;
    v_deleted := v_deleted + v_count;
  end loop;
  return v_deleted;
end
$$;
