-- Deletes a user with all their data. Returns false if there is no such user. An invite that is created during the
-- deletion is kept.
--
-- All functions lock rows in the same order, so that they cannot deadlock: first the invites, then the user, then the
-- account, then the imports, then the tokens in the order of their hashes.
--
-- The account is deleted before the bookmarks. So a writer that waits for the lock on the account's row finds no
-- account afterwards, and writes nothing.
create or replace function delete_user(p_email_key text) returns boolean
language plpgsql as $$
declare
  v_id bigint;
  v_codes text[];
begin
  v_codes := array(select code from invites where email_key = p_email_key order by code for update);
  select id into v_id from users where email_key = p_email_key for no key update;
  if not found then
    return false;
  end if;
  perform from accounts where user_id = v_id for update;
  delete from imports where user_id = v_id;
  perform from tokens where user_id = v_id order by token_hash for update;
  delete from accounts where user_id = v_id;
  delete from bookmarks where user_id = v_id;
  delete from trash where user_id = v_id;
  delete from search_blocks where user_id = v_id;
  delete from search_signatures where user_id = v_id;
  delete from users where id = v_id;
  delete from invites where code = any (v_codes);
  return true;
end
$$;
