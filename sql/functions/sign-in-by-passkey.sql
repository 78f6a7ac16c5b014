-- Opens a session for the owner of a passkey, after the caller has verified the signature. The outcome is
-- `passkey_missing` if the passkey was removed meanwhile, or if its counter did not rise. A counter that does not rise
-- may mean that a copy of the passkey exists. But 0 after 0 is accepted, because some authenticators do not count.
create or replace function sign_in_by_passkey(
  p_user_id bigint, p_credential_id text, p_counter bigint, p_token_hash bytea, p_last_four text, p_session_days integer,
  out outcome text, out email text
)
language plpgsql as $$
declare
  -- An update of a distributed table may call only immutable functions, so the time is computed before the update.
  v_now timestamptz := date_trunc('milliseconds', now());
begin
  perform from accounts where user_id = p_user_id for key share;
  update passkeys
  set counter = p_counter, last_used_at = v_now
  where user_id = p_user_id and credential_id = p_credential_id
    and (counter < p_counter or (counter = 0 and p_counter = 0));
  if not found then
    outcome := 'passkey_missing';
    return;
  end if;
  select s.outcome into outcome
  from open_session(p_user_id, p_token_hash, p_last_four, null, now(), p_session_days) s;
  select u.email into email from users u where u.id = p_user_id;
end
$$;
