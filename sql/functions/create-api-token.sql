-- Creates an API token for a user at an operator's request. If `p_days` is null, the token is valid until it is
-- revoked. If the account is suspended, the token becomes valid when the account is resumed.
create or replace function create_api_token(
  p_user_id bigint, p_token_hash bytea, p_last_four text, p_scope text, p_name text, p_name_key text, p_days integer
) returns tokens
language plpgsql as $$
declare
  v_token tokens;
  v_expires_at timestamptz := coalesce(now() + make_interval(days => p_days), 'infinity');
  v_suspended_at timestamptz;
begin
  select suspended_at into v_suspended_at from accounts where user_id = p_user_id for key share;
  insert into tokens (
    user_id, token_hash, id, last_four, kind, scope, name, name_key, expires_at, suspended_expires_at
  )
  values (
    p_user_id, p_token_hash, next_id('tokens_id_seq'), p_last_four, 'api', p_scope, p_name, p_name_key,
    case when v_suspended_at is null then v_expires_at else '-infinity' end,
    case when v_suspended_at is not null then v_expires_at end
  )
  returning * into v_token;
  -- Returns the time at which the token will expire, even if the stored time is `-infinity` during the suspension.
  v_token.expires_at := v_expires_at;
  return v_token;
end
$$;
