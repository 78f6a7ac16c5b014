-- Creates an API token for the user of a session. `p_token_hash` identifies the session, and `p_new_hash` is the hash
-- of the new token. `p_token` holds the other fields of the new token. The function locks the account's row, so that
-- two requests at the same time cannot exceed the limit or use the same name.
create or replace function create_own_token(
  p_user_id bigint, p_token_hash bytea, p_new_hash bytea, p_token jsonb, p_token_limit integer,
  out outcome text, out token jsonb
)
language plpgsql as $$
declare
  v_token tokens;
begin
  perform from accounts where user_id = p_user_id for no key update;
  outcome := check_fresh_session(p_user_id, p_token_hash);
  if outcome is not null then
    return;
  end if;
  if exists (
    select from tokens
    where user_id = p_user_id and kind = 'api' and name_key = p_token ->> 'name_key' and expires_at > now()
  ) then
    outcome := 'token_exists';
    return;
  end if;
  if (
    select count(*) from tokens where user_id = p_user_id and kind = 'api' and expires_at > now()
  ) >= p_token_limit then
    outcome := 'token_limit';
    return;
  end if;
  insert into tokens (user_id, token_hash, id, last_four, kind, scope, name, name_key, expires_at)
  values (
    p_user_id, p_new_hash, next_id('tokens_id_seq'), p_token ->> 'last_four', 'api', p_token ->> 'scope',
    p_token ->> 'name', p_token ->> 'name_key',
    coalesce(now() + make_interval(days => (p_token ->> 'days')::integer), 'infinity')
  )
  returning * into v_token;
  token := render_token(v_token);
end
$$;
