-- Links an identity to a user when a person first signs in with it at a provider. If a user already has the person's
-- e-mail address, the identity is linked to this user, but only if `p_is_trusted` is true. If no user has the address,
-- a user is created, but only if there is an invite or `p_is_open` is true. In all other cases the sign-in is refused.
--
-- A user has at most one identity of each issuer. So if the provider later gives the address to another person, that
-- person cannot sign in to the first person's account.
create or replace function first_sign_in(
  p_issuer text, p_subject text, p_email text, p_email_key text, p_is_trusted boolean, p_is_open boolean,
  out outcome text, out id bigint
)
language plpgsql as $$
declare
  v_invite invites;
  v_is_new boolean := false;
begin
  perform lock_identity(p_issuer, p_subject);
  select i.user_id into id from identities i where i.issuer = p_issuer and i.subject = p_subject;
  if found then
    return;
  end if;
  if p_email_key is null then
    outcome := 'unverified';
    return;
  end if;
  select u.id into id from users u where u.email_key = p_email_key for update;
  if not found then
    -- The lock reserves the invite until the end of this transaction. The invite is deleted only if this transaction
    -- creates the user.
    select * into v_invite
    from invites
    where email_key = p_email_key and expires_at > now()
    order by expires_at
    limit 1
    for update skip locked;
    if not found and not p_is_open then
      outcome := 'uninvited';
      return;
    end if;
    insert into users as u (id, email, email_key)
    values (next_id('users_id_seq'), coalesce(v_invite.email, p_email), p_email_key)
    on conflict (email_key) do nothing
    returning u.id into id;
    v_is_new := found;
    if v_is_new then
      insert into accounts (user_id) values (id);
      delete from invites where code = v_invite.code;
    else
      -- Another request has created the user meanwhile. `id` becomes null if that user has been deleted since.
      select u.id into id from users u where u.email_key = p_email_key for update;
    end if;
  end if;
  -- If the user already existed, the identity is linked only if the address is trusted and the user has no identity of
  -- this issuer.
  if id is null or not v_is_new and (
    not p_is_trusted or exists (select from identities i where i.user_id = id and i.issuer = p_issuer)
  ) then
    outcome := 'taken';
    id := null;
    return;
  end if;
  insert into identities (issuer, subject, user_id, email) values (p_issuer, p_subject, id, p_email);
end
$$;
