-- Checks whether a session may do something that needs more than a valid token, for example create a token. Returns
-- null if the session may do it. Otherwise returns one of these outcomes:
-- - `token`: the token does not belong to a valid session.
-- - `session_old`: a provider is linked to the account, and the person did not authenticate within the last 15 minutes.
--
-- The function locks the token's row, so that a revocation of the session waits until this transaction ends. After the
-- revocation, the session can create nothing more.
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
