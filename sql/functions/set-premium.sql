-- Sets whether a user is premium. Returns no row if there is no such user.
create or replace function set_premium(p_email_key text, p_is_premium boolean)
returns table (id bigint, email text, is_premium boolean, created_at text)
language plpgsql as $$
begin
  select u.id, u.email, render_time(u.created_at) into id, email, created_at
  from users u
  where u.email_key = p_email_key;
  if not found then
    return;
  end if;
  update accounts a set is_premium = p_is_premium where a.user_id = set_premium.id;
  if found then
    is_premium := p_is_premium;
    return next;
  end if;
end
$$;
