-- An invite works once: whoever deletes its row has it.
create or replace function exchange_invite(
  p_code text, p_token_hash bytea, p_session_days integer,
  out outcome text, out id bigint, out email text
)
language plpgsql as $$
declare
  v_invite invites;
begin
  delete from invites where code = p_code and expires_at > now() returning * into v_invite;
  if not found then
    outcome := 'invite_missing';
    return;
  end if;
  select u.id, u.email into id, email from ensure_user(v_invite.email, v_invite.email_key) u;
  insert into tokens (user_id, token_hash, kind, scope, name, expires_at)
  values (id, p_token_hash, 'session', 'write', '', now() + make_interval(days => p_session_days));
end
$$;
