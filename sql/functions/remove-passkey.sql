-- Removes a passkey. If it is the user's only one, the account must have an identity of the provider `p_issuer`.
-- Without that identity, the user could not sign in again after the sessions end. The function locks the account's row,
-- so that two requests at the same time cannot remove the last two passkeys.
create or replace function remove_passkey(
  p_user_id bigint, p_token_hash bytea, p_credential_id text, p_issuer text,
  out outcome text
)
language plpgsql as $$
begin
  perform from accounts where user_id = p_user_id for no key update;
  outcome := check_fresh_session(p_user_id, p_token_hash);
  if outcome is not null then
    return;
  end if;
  if not exists (select from passkeys where user_id = p_user_id and credential_id = p_credential_id) then
    outcome := 'passkey_missing';
    return;
  end if;
  if not exists (select from passkeys where user_id = p_user_id and credential_id <> p_credential_id)
    and not exists (select from identities where user_id = p_user_id and issuer = p_issuer) then
    outcome := 'passkey_last';
    return;
  end if;
  delete from passkeys where user_id = p_user_id and credential_id = p_credential_id;
end
$$;
