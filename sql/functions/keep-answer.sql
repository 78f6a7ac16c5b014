-- Keeps the response to a request that came with a key.
create or replace function keep_answer(p_user_id bigint, p_key text, p_request_hash bytea, p_answer text) returns void
language plpgsql as $$
begin
  if p_key is null then
    return;
  end if;
  insert into idempotency_keys (user_id, key, request_hash, answer)
  values (p_user_id, p_key, p_request_hash, p_answer)
  on conflict (user_id, key) do update
  set request_hash = excluded.request_hash, answer = excluded.answer, created_at = now();
end
$$;
