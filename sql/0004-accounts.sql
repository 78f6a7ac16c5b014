-- Users, invites and tokens.

-- The user of an e-mail address, made if there is none. The update of a row that is there locks it, so that the user
-- cannot be deleted before this transaction ends.
create function ensure_user(p_email text, p_email_key text, out id bigint, out email text)
language plpgsql as $$
begin
  insert into users as u (email, email_key) values (p_email, p_email_key)
  on conflict (email_key) do update set email_key = excluded.email_key
  returning u.id, u.email into id, email;
  insert into accounts (user_id) values (id) on conflict (user_id) do nothing;
end
$$;

-- An invite works once: whoever deletes its row has it.
create function exchange_invite(
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

-- Deletes a user with all that is theirs; false where there is none. Locks are taken in the order that every writer
-- keeps, staged imports before the account. The account goes before the bookmarks: a writer that waits
-- for it then finds no account and writes nothing.
create function delete_user(p_email_key text) returns boolean
language plpgsql as $$
declare
  v_id bigint;
begin
  select id into v_id from users where email_key = p_email_key for update;
  if not found then
    return false;
  end if;
  delete from imports where user_id = v_id;
  delete from accounts where user_id = v_id;
  delete from bookmarks where user_id = v_id;
  delete from users where id = v_id;
  delete from invites where email_key = p_email_key;
  return true;
end
$$;
