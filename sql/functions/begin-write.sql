-- Begins a write: locks the account's row, checks the token, and looks for a response that is kept under the
-- idempotency key. If `outcome` or `response` is not null, the caller must return both and write nothing.
create or replace function begin_write(
  p_user_id bigint, p_token_hash bytea, p_idempotency_key text, p_request_hash bytea,
  out outcome text, out response text
)
language plpgsql as $$
begin
  if not lock_account(p_user_id, p_token_hash) then
    outcome := 'token';
  elsif p_idempotency_key is not null then
    select kept.outcome, kept.response into outcome, response
    from find_response(p_user_id, p_idempotency_key, p_request_hash) kept;
  end if;
end
$$;
