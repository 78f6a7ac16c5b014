-- Creates a user. Returns no row if the address is taken.
create or replace function create_user(p_email text, p_email_key text, p_is_premium boolean)
returns table (id bigint, email text, is_premium boolean, created_at text)
language plpgsql as $$
declare
  v_created_at timestamptz;
begin
  insert into users as u (id, email, email_key) values (next_id('users_id_seq'), p_email, p_email_key)
  on conflict (email_key) do nothing
  returning u.id, u.email, u.created_at into id, email, v_created_at;
  if id is null then
    return;
  end if;
  insert into accounts (user_id, is_premium) values (id, p_is_premium);
  is_premium := p_is_premium;
  created_at := render_time(v_created_at);
  return next;
end
$$;
