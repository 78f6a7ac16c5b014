-- Links an account at a provider (an identity) to the user of a session, and replaces that session with a new one. The
-- outcome is `token` if the session has ended. The outcome is `linked` if the identity belongs to another user, or if
-- the user has another identity of this issuer.
create or replace function link_identity(
  p_user_id bigint, p_session_hash bytea, p_issuer text, p_subject text, p_email text,
  p_token_hash bytea, p_last_four text, p_authenticated_at timestamptz, p_session_days integer,
  out outcome text
)
language plpgsql as $$
declare
  v_owner_id bigint;
begin
  perform lock_identity(p_issuer, p_subject);
  -- These locks are taken in the same order as in `delete_user`, so that the two functions cannot deadlock.
  perform from users where id = p_user_id for update;
  perform from accounts where user_id = p_user_id for key share;
  perform lock_sessions(p_user_id);
  if not token_is_valid(p_user_id, p_session_hash) then
    outcome := 'token';
    return;
  end if;
  select user_id into v_owner_id from identities where issuer = p_issuer and subject = p_subject;
  if not found then
    if exists (select from identities where user_id = p_user_id and issuer = p_issuer) then
      outcome := 'linked';
      return;
    end if;
    insert into identities (issuer, subject, user_id, email) values (p_issuer, p_subject, p_user_id, p_email);
  elsif v_owner_id <> p_user_id then
    outcome := 'linked';
    return;
  end if;
  delete from tokens where user_id = p_user_id and token_hash = p_session_hash;
  select s.outcome into outcome
  from open_session(p_user_id, p_token_hash, p_last_four, null, p_authenticated_at, p_session_days) s;
end
$$;
