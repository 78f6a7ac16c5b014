-- Deletes expired tokens, at most `p_limit` of each shard, and returns their number. Keeps the tokens of suspended
-- accounts. Skips locked rows, which the next sweep deletes.
create or replace function sweep_tokens(p_limit integer) returns bigint
language plpgsql as $$
declare
  v_user record;
  v_count bigint;
  v_deleted bigint := 0;
begin
  -- The comparison with `infinity` lets Postgres use the partial index `tokens_expires_at`. Tokens of suspended
  -- accounts expire at `-infinity`.
  for v_user in
    select (expired ->> 'user_id')::bigint as id, array_agg(decode(expired ->> 'hash', 'hex')) as hashes
    from rows_of_shards(
      'tokens',
      $q$
        select user_id, encode(token_hash, 'hex') as hash
        from %s
        where expires_at < now() and expires_at < 'infinity' and expires_at > '-infinity'
        order by expires_at
        limit $q$ || p_limit
    ) expired
    group by 1
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
