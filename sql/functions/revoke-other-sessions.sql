-- Revokes all sessions of a user but the one that asks. Two that revoke each other lock the rows in the same order: the
-- second waits, and then is no session any more.
create or replace function revoke_other_sessions(
  p_user_id bigint, p_token_hash bytea, out outcome text, out revoked integer
)
language plpgsql as $$
begin
  perform from tokens
  where user_id = p_user_id and kind = 'session' and expires_at > now()
  order by token_hash
  for update;
  if not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  delete from tokens
  where user_id = p_user_id and kind = 'session' and token_hash <> p_token_hash and expires_at > now();
  get diagnostics revoked = row_count;
end
$$;
