-- Records that tokens of any users were used now. `p_token_hashes` holds the hashes of the tokens in hex. If a session
-- would end within `p_last_days`, its end moves to `p_session_days` from now, but no further than `p_max_days` after
-- its creation. Users whose node cannot be reached are skipped.
create or replace function note_uses(
  p_user_ids bigint[], p_token_hashes text[], p_last_days integer, p_session_days integer, p_max_days integer
) returns void
language plpgsql as $$
declare
  v_user record;
  v_ends_soon timestamptz := now() + make_interval(days => p_last_days);
  v_until timestamptz := now() + make_interval(days => p_session_days);
  v_is_sharded boolean := to_regclass('pg_catalog.pg_dist_shard') is not null;
begin
  for v_user in
    select used_token.user_id as id, array_agg(decode(used_token.hash, 'hex')) as hashes
    from unnest(p_user_ids, p_token_hashes) as used_token (user_id, hash)
    group by used_token.user_id
  loop
    if not v_is_sharded then
      perform note_user_uses(v_user.id, v_user.hashes, v_ends_soon, v_until, p_max_days);
      continue;
    end if;
    -- An exception handler starts a subtransaction, which costs time. The handler is needed only on a sharded database.
    begin
      perform note_user_uses(v_user.id, v_user.hashes, v_ends_soon, v_until, p_max_days);
    exception when connection_exception then
      null;
    end;
  end loop;
end
$$;
