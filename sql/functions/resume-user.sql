-- Ends the suspension of a user. The user's tokens become valid again, and expire when they would have expired without
-- the suspension. Returns no row if there is no such user.
create or replace function resume_user(p_email_key text)
returns table (id bigint, email text, suspended_at text)
language plpgsql as $$
begin
  select u.id, u.email into id, email from users u where u.email_key = p_email_key for no key update;
  if not found then
    return;
  end if;
  perform from accounts a where a.user_id = resume_user.id for update;
  update accounts a set suspended_at = null where a.user_id = resume_user.id;
  update tokens t
  set expires_at = t.suspended_expires_at, suspended_expires_at = null
  where t.user_id = resume_user.id and t.suspended_expires_at is not null;
  return next;
end
$$;
