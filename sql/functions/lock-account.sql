-- Locks the user's account against other writers. Then returns whether the token is valid, because it may have been
-- revoked during the wait for the lock.
create or replace function lock_account(p_user_id bigint, p_token_hash bytea) returns boolean
language plpgsql as $$
begin
  perform from accounts where user_id = p_user_id for no key update;
  return token_is_valid(p_user_id, p_token_hash);
end
$$;
