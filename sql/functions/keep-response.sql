-- Keeps the response to a request under its idempotency key. Does nothing if the key is null. The caller must have
-- called `find_response`, which checks that there is room for the response. The column `bytes` has the size of the
-- response, of the key and of an import's errors, plus 100 bytes for the rest of the row.
create or replace function keep_response(
  p_user_id bigint, p_key text, p_request_hash bytea, p_response text,
  p_import_id uuid default null, p_error_bytes bigint default null
) returns void
language plpgsql as $$
declare
  v_bytes bigint := octet_length(p_response) + octet_length(p_key) + coalesce(p_error_bytes, 0) + 100;
begin
  if p_key is null then
    return;
  end if;
  insert into idempotency_keys (user_id, key, request_hash, response, import_id, bytes)
  values (p_user_id, p_key, p_request_hash, p_response, p_import_id, v_bytes);
  update accounts set kept_bytes = kept_bytes + v_bytes where user_id = p_user_id;
end
$$;
