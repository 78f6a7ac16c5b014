-- Locks the user's row in `accounts`, so that other functions that write the user's data wait. Then returns whether the
-- token is valid. The token is checked after the lock is taken, because it may be revoked during the wait.
create or replace function lock_account(p_user_id bigint, p_token_hash bytea) returns boolean
language plpgsql as $$
begin
  perform from accounts where user_id = p_user_id for no key update;
  return token_is_valid(p_user_id, p_token_hash);
end
$$;
