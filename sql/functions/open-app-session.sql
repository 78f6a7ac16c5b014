-- Opens a session for an app, or for another device if `p_app_name` is null. A browser's session, with the hash
-- `p_session_hash`, has approved the new session. The outcome is `token` if the approving session has ended. The
-- approving session records when the person authenticated, and the new session gets the same time.
create or replace function open_app_session(
  p_user_id bigint, p_session_hash bytea, p_app_name text, p_token_hash bytea, p_last_four text,
  p_session_days integer,
  out outcome text, out email text
)
language plpgsql as $$
declare
  v_authenticated_at timestamptz;
begin
  perform from accounts where user_id = p_user_id for key share;
  perform lock_sessions(p_user_id);
  select authenticated_at into v_authenticated_at
  from tokens
  where user_id = p_user_id and token_hash = p_session_hash and expires_at > now();
  if not found then
    outcome := 'token';
    return;
  end if;
  -- If it is unknown when the person authenticated, the new session counts as authenticated long ago.
  select s.outcome into outcome
  from open_session(
    p_user_id, p_token_hash, p_last_four, p_app_name, coalesce(v_authenticated_at, 'epoch'), p_session_days
  ) s;
  select u.email into email from users u where u.id = p_user_id;
end
$$;
