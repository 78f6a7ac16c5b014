-- Locks all sessions of a user until the end of the transaction, in the order of their hashes. Every function that opens
-- a session or deletes several calls this function before it reads or deletes a session, and after it has locked rows of
-- `users` and `accounts`. So sign-ins of one user run one after another, and each sees the sessions that the previous one
-- opened. Row locks alone cannot do that, because they do not exclude new rows. Writers of bookmarks, such as imports,
-- take neither of these locks, so a sign-in never waits for them.
create or replace function lock_sessions(p_user_id bigint) returns void
language plpgsql as $$
begin
  -- On a Citus cluster, this statement runs on the node with the user's rows. So the sign-ins of one user take their
  -- advisory lock on the same node, whichever node they began on.
  perform pg_advisory_xact_lock(hashtextextended('sessions ' || user_id, 0)) from accounts where user_id = p_user_id;
  perform from tokens where user_id = p_user_id and kind = 'session' order by token_hash for update;
end
$$;
