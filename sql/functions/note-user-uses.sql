-- Records that tokens of a user were used now. If a session would end before `p_ends_soon`, its end moves to `p_until`,
-- but no further than `p_max_days` after its creation. Tokens that another transaction has locked are skipped.
create or replace function note_user_uses(
  p_user_id bigint, p_token_hashes bytea[], p_ends_soon timestamptz, p_until timestamptz, p_max_days integer
) returns void
language plpgsql as $$
declare
  v_hashes bytea[];
begin
  -- A separate statement locks the tokens. As a subquery of the update, it might run once for each row.
  select coalesce(array_agg(token_hash), '{}') into v_hashes
  from (
    select token_hash
    from tokens
    where user_id = p_user_id and token_hash = any (p_token_hashes) and expires_at > now()
    for no key update skip locked
  ) unlocked;
  update tokens
  set last_used_at = date_trunc('milliseconds', now()),
    expires_at = case
      when kind = 'session' and expires_at < p_ends_soon then
        greatest(
          expires_at,
          -- In UTC, every day has 24 hours.
          least(p_until, (created_at at time zone 'UTC' + make_interval(days => p_max_days)) at time zone 'UTC')
        )
      else expires_at
    end
  where user_id = p_user_id and token_hash = any (v_hashes);
end
$$;
