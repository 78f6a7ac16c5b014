-- Deletes tokens that have expired, at most so many, and says how many. It waits for nobody: a row that somebody has locked
-- stays for the next sweep.
create or replace function sweep_tokens(p_limit integer) returns bigint
language plpgsql as $$
declare
  v_user record;
  v_count bigint;
  v_deleted bigint := 0;
begin
  for v_user in
    select user_id as id, array_agg(token_hash) as hashes
    from (
      select user_id, token_hash
      from tokens
      where expires_at < now() and expires_at < 'infinity'
      order by expires_at
      limit p_limit
    ) expired
    group by user_id
  loop
    delete from tokens
    where user_id = v_user.id and token_hash in (
      select token_hash
      from tokens
      where user_id = v_user.id and token_hash = any (v_user.hashes) and expires_at < now()
      for update skip locked
    );
    get diagnostics v_count = row_count;
    v_deleted := v_deleted + v_count;
  end loop;
  return v_deleted;
end
$$;
