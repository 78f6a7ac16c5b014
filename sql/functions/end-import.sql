-- Ends an import with the state `done` or `cancelled`, and deletes its staged body and batches. Returns false if there
-- is no such import, or if it has already ended. If a transaction is writing the import, waits until that transaction
-- ends.
create or replace function end_import(
  p_user_id bigint, p_import_id uuid, p_state text, p_result text default null, p_repeats uuid default null
) returns boolean
language plpgsql as $$
declare
  -- An update of a distributed table may call only immutable functions, so the times are computed before the update.
  v_now timestamptz := now();
  v_expires_at timestamptz := v_now + interval '1 hour';
  v_keyed_expires_at timestamptz := v_now + interval '25 hours';
begin
  update imports
  set state = p_state, result = p_result, repeats = p_repeats, touched_at = v_now,
    expires_at = case when idempotency_key is null then v_expires_at else v_keyed_expires_at end,
    lease_id = null, lease_until = null
  where user_id = p_user_id and id = p_import_id and state in ('receiving', 'queued');
  if not found then
    return false;
  end if;
  delete from import_chunks where user_id = p_user_id and import_id = p_import_id;
  delete from import_batches where user_id = p_user_id and import_id = p_import_id;
  return true;
end
$$;
