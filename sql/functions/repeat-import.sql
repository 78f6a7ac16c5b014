-- Gives an import that repeats an earlier one, by its key, what that one was answered with; the bytes of its errors.
create or replace function repeat_import(
  p_user_id bigint, p_import_id uuid, p_is_staged boolean, p_result text, p_key text
) returns bigint
language plpgsql as $$
declare
  v_bytes bigint := (
    select coalesce(sum(pg_column_size(errors)), 0) from idempotency_errors where user_id = p_user_id and key = p_key
  );
begin
  if p_is_staged then
    update imports
    set state = 'done', result = p_result, error_bytes = v_bytes, touched_at = now(), lease_id = null, lease_until = null
    where user_id = p_user_id and id = p_import_id;
    delete from import_chunks where user_id = p_user_id and import_id = p_import_id;
    delete from import_pieces where user_id = p_user_id and import_id = p_import_id;
    delete from import_errors where user_id = p_user_id and import_id = p_import_id;
  else
    insert into imports (user_id, id, state, bytes, result, error_bytes)
    values (p_user_id, p_import_id, 'done', 0, p_result, v_bytes);
  end if;
  insert into import_errors (user_id, import_id, position, errors)
  select p_user_id, p_import_id, position, errors
  from idempotency_errors
  where user_id = p_user_id and key = p_key;
  return v_bytes;
end
$$;
