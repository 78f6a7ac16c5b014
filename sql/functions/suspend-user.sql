-- Suspends a user: cancels the user's large import, and makes all tokens invalid until `resume_user` is called. Only
-- the staged data of that import is deleted. Returns no row if there is no such user. The function takes locks in the
-- same order as `delete_user`, so that the two cannot deadlock. Requests that open a session or create a token wait for
-- the lock on the account's row, and then find the suspension.
create or replace function suspend_user(p_email_key text)
returns table (id bigint, email text, suspended_at text, import_ids uuid[])
language plpgsql as $$
declare
  -- An update of a distributed table may call only immutable functions, so the time is computed before the update.
  v_now timestamptz := date_trunc('milliseconds', now());
  v_suspended_at timestamptz;
begin
  select u.id, u.email into id, email from users u where u.email_key = p_email_key for no key update;
  if not found then
    return;
  end if;
  perform from accounts a where a.user_id = suspend_user.id for update;
  -- A user has at most one large import in progress.
  import_ids := array(
    select i.id
    from imports i
    where i.user_id = suspend_user.id and i.is_staged and i.state in ('receiving', 'queued')
    for update
  );
  if cardinality(import_ids) > 0 then
    perform end_import(suspend_user.id, import_ids[1], 'cancelled');
  end if;
  update accounts a
  set suspended_at = coalesce(a.suspended_at, v_now)
  where a.user_id = suspend_user.id
  returning a.suspended_at into v_suspended_at;
  suspended_at := render_time(v_suspended_at);
  perform from tokens t where t.user_id = suspend_user.id order by t.token_hash for update;
  update tokens t
  set suspended_expires_at = t.expires_at, expires_at = '-infinity'
  where t.user_id = suspend_user.id and t.suspended_expires_at is null;
  return next;
end
$$;
