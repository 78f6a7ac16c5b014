-- Deletes the account of the session's user, with all data of the account. The outcome is `email_differs` if
-- `p_email_key` is not the address of the account.
--
-- The function takes locks in the same order as `delete_user`, and then locks the tokens in the same order as
-- `revoke_other_sessions`. So the three functions cannot deadlock. The session is checked after all locks are taken, so
-- a session that was revoked meanwhile deletes nothing.
create or replace function delete_account(
  p_user_id bigint, p_token_hash bytea, p_email_key text, out outcome text
)
language plpgsql as $$
declare
  v_email_key text;
begin
  select email_key into v_email_key from users where id = p_user_id;
  perform from invites where email_key = v_email_key order by code for update;
  perform from users where id = p_user_id for no key update;
  perform from accounts where user_id = p_user_id for update;
  perform from imports where user_id = p_user_id order by id for update;
  perform from tokens where user_id = p_user_id order by token_hash for update;
  outcome := check_fresh_session(p_user_id, p_token_hash);
  if outcome is null and v_email_key is distinct from p_email_key then
    outcome := 'email_differs';
  end if;
  if outcome is null then
    perform delete_user(v_email_key);
  end if;
end
$$;
