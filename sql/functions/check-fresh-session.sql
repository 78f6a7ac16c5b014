-- Checks a session for actions that need more than a valid token. Returns null, or the outcome. A person must have
-- authenticated within 15 minutes, unless the account has no provider for it. The row's lock makes a revocation wait
-- until this transaction ends, so that everything the session made exists when the revocation is answered.
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
