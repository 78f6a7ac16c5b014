-- Deletes imports that have expired (`imports.expires_at`). Deletes at most `p_limit` of them in each shard, and returns
-- their number.
create or replace function sweep_imports(p_limit integer) returns bigint
language plpgsql as $$
declare
  v_user record;
  v_count bigint;
  v_deleted bigint := 0;
begin
  for v_user in
    select (old ->> 'user_id')::bigint as id, array_agg((old ->> 'id')::uuid) as imports
    from rows_of_shards('imports', 'select user_id, id from %s where expires_at < now() limit ' || p_limit) old
    group by 1
  loop
    -- An upload that was found above is kept if more bytes arrived meanwhile.
    delete from imports where user_id = v_user.id and id = any (v_user.imports) and expires_at < now();
    get diagnostics v_count = row_count;
    v_deleted := v_deleted + v_count;
  end loop;
  return v_deleted;
end
$$;
