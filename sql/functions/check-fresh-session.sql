-- Checks a session for actions that need more than a valid token. Returns null, or the outcome of a refusal. The person
-- must have authenticated within the last 15 minutes, unless no provider is linked to the account. The lock on the
-- token's row makes a revocation wait until this transaction ends. So the session can create nothing after its
-- revocation has responded.
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
