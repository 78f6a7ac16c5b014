-- Deletes an invite, and opens a session for the user with the invite's address. Creates the user if there is none.
-- Only one transaction can delete the invite's row, so an invite works once. If `p_email_key` is given, the invite must
-- be for that address. If the account is suspended, the invite is kept.
create or replace function exchange_invite(
  p_code text, p_email_key text, p_token_hash bytea, p_last_four text, p_session_days integer,
  out outcome text, out id bigint, out email text
)
language plpgsql as $$
declare
  v_invite invites;
begin
  delete from invites
  where code = p_code and expires_at > now() and (p_email_key is null or email_key = p_email_key)
  returning * into v_invite;
  if not found then
    outcome := 'invite_missing';
    return;
  end if;
  -- If the user exists, the update locks their row, so that the user cannot be deleted before this transaction ends.
  insert into users as u (id, email, email_key)
  values (next_id('users_id_seq'), v_invite.email, v_invite.email_key)
  on conflict (email_key) do update set email_key = excluded.email_key
  returning u.id, u.email into id, email;
  insert into accounts (user_id) values (id) on conflict (user_id) do nothing;
  select s.outcome into outcome from open_session(id, p_token_hash, p_last_four, null, null, p_session_days) s;
  if outcome = 'suspended' then
    insert into invites (code, email, email_key, expires_at)
    values (v_invite.code, v_invite.email, v_invite.email_key, v_invite.expires_at);
  end if;
end
$$;
