-- Locks the user's account against other writers, then says whether the token is valid: while the lock was waited for, it may
-- have been revoked.
create or replace function lock_account(p_user_id bigint, p_token_hash bytea) returns boolean
language plpgsql as $$
begin
  perform from accounts where user_id = p_user_id for no key update;
  return token_is_valid(p_user_id, p_token_hash);
end
$$;
