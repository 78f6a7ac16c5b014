-- Returns a user, and the numbers of the user's bookmarks, tags and valid tokens. The caller passes the user's id or
-- address, and null as the other argument. Returns no row if there is no such user.
create or replace function find_user(p_id bigint, p_email_key text)
returns table (
  id bigint, email text, is_premium boolean, created_at text, suspended_at text,
  bookmark_count bigint, tag_count bigint, token_count bigint
)
language plpgsql stable as $$
begin
  select u.id, u.email, render_time(u.created_at) into id, email, created_at
  from users u
  where u.id = p_id or u.email_key = p_email_key;
  select a.is_premium, render_time(a.suspended_at), a.bookmark_count, a.tag_count
  into is_premium, suspended_at, bookmark_count, tag_count
  from accounts a
  where a.user_id = find_user.id;
  if not found then
    return;
  end if;
  token_count := (select count(*) from tokens k where k.user_id = find_user.id and k.expires_at > now());
  return next;
end
$$;
