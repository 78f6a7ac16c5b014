-- Notes that tokens of any users, by their hashes in hex, were used now, and prolongs sessions that end within
-- `p_last_days` to `p_session_days` from now, `p_max_days` from their creation at most. A row that is locked is left out.
create or replace function note_uses(
  p_user_ids bigint[], p_token_hashes text[], p_last_days integer, p_session_days integer, p_max_days integer
) returns void
language plpgsql as $$
declare
  v_user record;
  v_now timestamptz := date_trunc('milliseconds', now());
  v_ends_soon timestamptz := now() + make_interval(days => p_last_days);
  v_until timestamptz := now() + make_interval(days => p_session_days);
begin
  for v_user in
    select given.user_id as id, array_agg(decode(given.hash, 'hex')) as hashes
    from unnest(p_user_ids, p_token_hashes) as given (user_id, hash)
    group by given.user_id
  loop
    update tokens
    set last_used_at = v_now,
      expires_at = case
        when kind = 'session' and expires_at < v_ends_soon then
          greatest(
            expires_at,
            least(v_until, (created_at at time zone 'UTC' + make_interval(days => p_max_days)) at time zone 'UTC')
          )
        else expires_at
      end
    where user_id = v_user.id and token_hash in (
      select token_hash
      from tokens
      where user_id = v_user.id and token_hash = any (v_user.hashes) and expires_at > now()
      for no key update skip locked
    );
  end loop;
end
$$;
