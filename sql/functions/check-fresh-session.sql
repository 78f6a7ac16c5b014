-- Checks whether a session may do something that needs more than a valid token, for example create a token. Returns
-- null if it may, and otherwise the outcome that says why not. If a provider is linked to the account, the person must
-- have authenticated within the last 15 minutes.
--
-- The function locks the token's row, so that a revocation of the session waits until this transaction ends. So once
-- the revocation has responded, the session can create nothing.
create or replace function check_fresh_session(p_user_id bigint, p_token_hash bytea) returns text
language plpgsql as $$
declare
  v_authenticated_at timestamptz;
begin
  select authenticated_at into v_authenticated_at
  from tokens
  where user_id = p_user_id and token_hash = p_token_hash and kind = 'session' and expires_at > now()
  for key share;
  if not found then
    return 'token';
  end if;
  if coalesce(v_authenticated_at > now() - interval '15 minutes', false)
    or not exists (select from identities where user_id = p_user_id) then
    return null;
  end if;
  return 'session_old';
end
$$;
