-- Revokes all sessions of a user except the session that requests this. The function locks the sessions first. So if two
-- sessions revoke each other at the same time, one of them waits for the other. After the wait, the session that waited
-- is itself revoked, and revokes nothing.
create or replace function revoke_other_sessions(
  p_user_id bigint, p_token_hash bytea, p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text
)
language plpgsql as $$
declare
  v_revoked integer;
begin
  -- Only a request with an idempotency key locks the account's row. It needs the lock to keep its response.
  if p_idempotency_key is not null then
    select begun.outcome, begun.response into outcome, response
    from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
    if outcome is not null or response is not null then
      return;
    end if;
  end if;
  perform lock_sessions(p_user_id);
  if not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  delete from tokens
  where user_id = p_user_id and kind = 'session' and token_hash <> p_token_hash and expires_at > now();
  get diagnostics v_revoked = row_count;
  response := '{"revoked":' || v_revoked || '}';
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
