-- Opens a session of a user. The outcome is `token` if the user no longer exists, and `suspended` if the account is
-- suspended. The lock `for key share` on the account's row does not wait for the locks of writers, so a login never
-- waits for an import. A user has at most 100 sessions. If there would be more, the least recently used session ends.
create or replace function open_session(
  p_user_id bigint, p_token_hash bytea, p_last_four text, p_app_name text, p_authenticated_at timestamptz,
  p_session_days integer,
  out outcome text
)
language plpgsql as $$
declare
  v_suspended_at timestamptz;
begin
  select suspended_at into v_suspended_at from accounts where user_id = p_user_id for key share;
  if not found then
    outcome := 'token';
    return;
  end if;
  if v_suspended_at is not null then
    outcome := 'suspended';
    return;
  end if;
  perform lock_sessions(p_user_id);
  -- Keep the 99 most recently used sessions, so that the new one is the hundredth.
  delete from tokens
  where user_id = p_user_id and token_hash in (
    select token_hash
    from tokens
    where user_id = p_user_id and kind = 'session'
    order by last_used_at desc nulls last, id desc
    offset 99
  );
  insert into tokens (
    user_id, token_hash, id, last_four, kind, scope, app_name, authenticated_at, last_used_at, expires_at
  )
  values (
    p_user_id, p_token_hash, next_id('tokens_id_seq'), p_last_four, 'session', 'write', p_app_name,
    date_trunc('milliseconds', least(p_authenticated_at, now())), date_trunc('milliseconds', now()),
    now() + make_interval(days => p_session_days)
  );
end
$$;
