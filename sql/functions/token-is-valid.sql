-- Returns whether the user has a token with this hash that is neither revoked nor expired.
create or replace function token_is_valid(p_user_id bigint, p_token_hash bytea) returns boolean
language plpgsql stable as $$
begin
  return exists (
    select from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now()
  );
end
$$;
