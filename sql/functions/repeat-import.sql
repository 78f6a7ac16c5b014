-- Ends an import that repeats an earlier import under the same idempotency key. The new import gets the result and the
-- errors of the earlier import, and writes no bookmarks. Returns the size of these errors in bytes.
create or replace function repeat_import(p_user_id bigint, p_import_id uuid, p_result text, p_key text) returns bigint
language plpgsql as $$
declare
  v_bytes bigint := (
    select coalesce(sum(pg_column_size(errors)), 0) from idempotency_errors where user_id = p_user_id and key = p_key
  );
begin
  if not end_import(p_user_id, p_import_id, 'done', p_result, v_bytes) then
    raise exception 'the import was cancelled';
  end if;
  insert into import_errors (user_id, import_id, position, errors)
  select p_user_id, p_import_id, position, errors
  from idempotency_errors
  where user_id = p_user_id and key = p_key;
  return v_bytes;
end
$$;
