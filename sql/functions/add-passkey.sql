-- Stores a passkey for the user of a session. The function locks the account's row, so that two requests at the same
-- time cannot exceed the limit.
create or replace function add_passkey(
  p_user_id bigint, p_token_hash bytea, p_credential_id text, p_public_key bytea, p_counter bigint, p_name text,
  p_limit integer,
  out outcome text
)
language plpgsql as $$
begin
  perform from accounts where user_id = p_user_id for no key update;
  outcome := check_fresh_session(p_user_id, p_token_hash);
  if outcome is not null then
    return;
  end if;
  if exists (select from passkeys where user_id = p_user_id and credential_id = p_credential_id) then
    outcome := 'passkey_exists';
    return;
  end if;
  if (select count(*) from passkeys where user_id = p_user_id) >= p_limit then
    outcome := 'passkey_limit';
    return;
  end if;
  insert into passkeys (user_id, credential_id, public_key, counter, name)
  values (p_user_id, p_credential_id, p_public_key, p_counter, p_name);
end
$$;
