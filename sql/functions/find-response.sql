-- Finds the response that is kept under an idempotency key. For a new key both results are null. If the key was used
-- for another request, the outcome is `key_reused`. If there is no room for the response of a new key, the outcome is
-- `responses_full`, and the caller does nothing. The room is enough for an added bookmark, which takes at most about
-- 260 KiB. `import_bookmarks` checks separately that the errors of an import fit.
--
-- Requires the account's lock. So if a request is repeated while it runs, the repeat waits and then finds the response.
create or replace function find_response(
  p_user_id bigint, p_key text, p_request_hash bytea, out outcome text, out response text
)
language plpgsql as $$
declare
  v_kept record;
begin
  if p_key is null then
    return;
  end if;
  select k.request_hash, k.response, k.created_at > now() - interval '24 hours' as is_valid
  into v_kept
  from idempotency_keys k
  where k.user_id = p_user_id and k.key = p_key;
  if v_kept.is_valid then
    if v_kept.request_hash = p_request_hash then
      response := v_kept.response;
    else
      outcome := 'key_reused';
    end if;
    return;
  end if;
  if v_kept.is_valid is not null then
    perform forget_responses(p_user_id, array[p_key]);
  end if;
  if kept_room(p_user_id) < 524288 then
    outcome := 'responses_full';
  end if;
end
$$;
