-- Returns the response that is kept under an idempotency key. If it is the response to an import, returns the id of the
-- import too. All results are null if the key is null, or if no response is kept and there is room for one. The caller
-- then continues. Outcomes:
-- - `key_reused`: the key was used for another request.
-- - `responses_full`: less than `limit_of('response_room')` is left for the response to a new key. The caller must write
--   nothing.
--
-- This is enough for the largest response, an added bookmark of about 260 KiB. Only the errors of an import may be
-- larger, and `import_bookmarks` checks whether they fit.
--
-- The caller must hold the lock on the account's row. So if a request is repeated while it still runs, the repeat waits
-- for the lock and then finds the response.
create or replace function find_response(
  p_user_id bigint, p_key text, p_request_hash bytea, out outcome text, out response text, out import_id uuid
)
language plpgsql as $$
declare
  v_stored record;
begin
  if p_key is null then
    return;
  end if;
  select k.request_hash, k.response, k.import_id, k.created_at > now() - interval '24 hours' as is_valid
  into v_stored
  from idempotency_keys k
  where k.user_id = p_user_id and k.key = p_key;
  if v_stored.is_valid then
    if v_stored.request_hash = p_request_hash then
      response := v_stored.response;
      import_id := v_stored.import_id;
    else
      outcome := 'key_reused';
    end if;
    return;
  end if;
  -- A kept response that is too old must be deleted before the new one is kept under the same key.
  if v_stored.is_valid is not null then
    perform forget_responses(p_user_id, array[p_key]);
  end if;
  if kept_room(p_user_id) < limit_of('response_room') then
    outcome := 'responses_full';
  end if;
end
$$;
