-- Ends an import with the state `done` or `cancelled`, and deletes its staged body and batches. Returns false if the
-- import has already ended, or if its account no longer exists.
--
-- A small import has no row before it ends, so this function inserts one. If a small import is cancelled before its
-- bookmarks are written, the statement that would write them finds the row and fails.
create or replace function end_import(
  p_user_id bigint, p_import_id uuid, p_state text, p_result text default null, p_error_bytes bigint default 0
) returns boolean
language plpgsql as $$
begin
  insert into imports as i (user_id, id, state, bytes, result, error_bytes)
  select user_id, p_import_id, p_state, 0, p_result, p_error_bytes
  from accounts
  where user_id = p_user_id
  on conflict (user_id, id) do update
  set state = excluded.state, result = excluded.result, error_bytes = excluded.error_bytes,
    -- `excluded.touched_at` is the default of the column: the current time.
    touched_at = excluded.touched_at, lease_id = null, lease_until = null
  where i.state in ('receiving', 'queued');
  if not found then
    return false;
  end if;
  delete from import_chunks where user_id = p_user_id and import_id = p_import_id;
  delete from import_batches where user_id = p_user_id and import_id = p_import_id;
  return true;
end
$$;
