-- Returns the user of an e-mail address, and creates it if there is none. The update of an existing row locks it, so
-- that the user cannot be deleted before this transaction ends.
create or replace function ensure_user(p_email text, p_email_key text, out id bigint, out email text)
language plpgsql as $$
begin
  insert into users as u (id, email, email_key) values (next_id('users_id_seq'), p_email, p_email_key)
  on conflict (email_key) do update set email_key = excluded.email_key
  returning u.id, u.email into id, email;
  insert into accounts (user_id) values (id) on conflict (user_id) do nothing;
end
$$;
