-- Finds the response of an idempotency key. For a new key both results are null. For another request with the same
-- key the outcome is `key_reused`. A new key needs room for the longest response. Without it, the outcome is
-- `responses_full` before anything is done. An added bookmark takes at most about 260 KiB; `keep_import` measures the
-- errors of an import.
--
-- Requires the account's lock: a repeat that runs at the same time waits for it, and then finds the response.
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
