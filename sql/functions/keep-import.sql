-- Stores the result of an import and, if the import is large, its errors. If the import has an idempotency key, stores
-- the result and the errors under the key too. `p_errors` are the errors of the last batch, and `import_batches` has
-- the errors of the other batches. If the import was cancelled meanwhile, raises an error, which undoes the whole
-- import.
create or replace function keep_import(
  p_user_id bigint, p_import_id uuid, p_result text, p_errors text, p_error_bytes bigint, p_key text, p_request_hash bytea
) returns void
language plpgsql as $$
declare
  v_is_staged boolean := exists (
    select from imports where user_id = p_user_id and id = p_import_id and state = 'queued'
  );
begin
  perform keep_response(p_user_id, p_key, p_request_hash, p_result);
  if p_key is not null and p_error_bytes > 0 then
    -- The errors of the last batch come after the errors of all other batches, so they get the highest position.
    insert into idempotency_errors (user_id, key, position, errors)
    select p_user_id, p_key, position, errors
    from import_batches
    where user_id = p_user_id and import_id = p_import_id and errors <> ''
    union all
    select p_user_id, p_key, 2147483647, p_errors where p_errors <> '';
    update idempotency_keys set bytes = bytes + p_error_bytes where user_id = p_user_id and key = p_key;
    update accounts set kept_bytes = kept_bytes + p_error_bytes where user_id = p_user_id;
  end if;
  if v_is_staged then
    insert into import_errors (user_id, import_id, position, errors)
    select p_user_id, p_import_id, position, errors
    from import_batches
    where user_id = p_user_id and import_id = p_import_id and errors <> ''
    union all
    select p_user_id, p_import_id, 2147483647, p_errors where p_errors <> '';
  end if;
  if not end_import(p_user_id, p_import_id, 'done', p_result, case when v_is_staged then p_error_bytes else 0 end) then
    raise exception 'the import was cancelled';
  end if;
end
$$;
