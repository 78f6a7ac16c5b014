-- Ends an import whose idempotency key belongs to an earlier import. The repeated import gets the response of the
-- earlier one. Returns the size of the earlier import's errors in bytes.
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
