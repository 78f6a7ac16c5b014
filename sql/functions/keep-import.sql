-- Keeps the result of an import beside what it does: in the row of a staged one, in a row of its own for a small one.
-- Where a cancellation took that place, the duplicate key undoes everything. Of a request with a key the errors are kept
-- as well, if there is room: `responses_full` else, or `response_too_long` where there never is, and nothing was done.
create or replace function keep_import(
  p_user_id bigint, p_import_id uuid, p_is_staged boolean, p_result text, p_errors text, p_key text, p_request_hash bytea,
  out outcome text
)
language plpgsql as $$
declare
  v_bytes bigint := octet_length(p_errors) + (
    select coalesce(sum(pg_column_size(errors)), 0)
    from import_errors
    where user_id = p_user_id and import_id = p_import_id
  );
begin
  if p_key is not null and v_bytes > kept_room(p_user_id) then
    outcome := case when v_bytes > 16000000 then 'response_too_long' else 'responses_full' end;
    return;
  end if;

  if p_is_staged then
    update imports
    set state = 'done', result = p_result, error_bytes = v_bytes, touched_at = now(), lease_id = null, lease_until = null
    where user_id = p_user_id and id = p_import_id;
    delete from import_chunks where user_id = p_user_id and import_id = p_import_id;
    insert into import_errors (user_id, import_id, position, errors)
    select p_user_id, p_import_id, 2147483647, p_errors
    where p_errors <> '';
  else
    insert into imports (user_id, id, state, bytes, result) values (p_user_id, p_import_id, 'done', 0, p_result);
  end if;

  perform keep_response(p_user_id, p_key, p_request_hash, p_result);
  if p_key is not null and v_bytes > 0 then
    insert into idempotency_errors (user_id, key, position, errors)
    select p_user_id, p_key, position, errors
    from import_errors
    where user_id = p_user_id and import_id = p_import_id
    union all
    select p_user_id, p_key, 2147483647, p_errors
    where p_errors <> '' and not p_is_staged;
    update idempotency_keys set bytes = bytes + v_bytes where user_id = p_user_id and key = p_key;
    update accounts set kept_bytes = kept_bytes + v_bytes where user_id = p_user_id;
  end if;
end
$$;
