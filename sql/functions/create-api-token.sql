-- Creates an API token of a user for an operator. Without days it is valid until it is revoked.
create or replace function create_api_token(
  p_user_id bigint, p_token_hash bytea, p_last_four text, p_scope text, p_name text, p_name_key text, p_days integer
) returns tokens
language plpgsql as $$
declare
  v_token tokens;
begin
  insert into tokens (user_id, token_hash, id, last_four, kind, scope, name, name_key, expires_at)
  values (
    p_user_id, p_token_hash, next_id('tokens_id_seq'), p_last_four, 'api', p_scope, p_name, p_name_key,
    coalesce(now() + make_interval(days => p_days), 'infinity')
  )
  returning * into v_token;
  return v_token;
end
$$;
