-- Revokes one of the user's own valid tokens. `is_current` says whether the revoked token is the token of this request.
-- Only a request with an idempotency key locks the account's row, because it needs the lock to keep its response.
-- Without a key, a revocation never waits for an import.
create or replace function revoke_own_token(
  p_user_id bigint, p_token_hash bytea, p_kind text, p_id bigint,
  p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text, out is_current boolean
)
language plpgsql as $$
begin
  is_current := false;
  if p_idempotency_key is not null then
    select begun.outcome, begun.response into outcome, response
    from begin_write(p_user_id, p_token_hash, p_idempotency_key, p_request_hash) begun;
    if outcome is not null or response is not null then
      return;
    end if;
  elsif not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  delete from tokens
  where user_id = p_user_id and id = p_id and kind = p_kind and expires_at > now()
  returning token_hash = p_token_hash into is_current;
  if not found then
    outcome := case p_kind when 'api' then 'api_token_missing' else 'session_missing' end;
    return;
  end if;
  response := '{"revoked":true}';
  perform keep_response(p_user_id, p_idempotency_key, p_request_hash, response);
end
$$;
