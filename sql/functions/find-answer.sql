-- The answer that a key has had, or the outcome `key_reused` for another request; both null for a key that is new.
-- Its callers hold the account's lock: a repeat that runs at the same time waits for it, and then finds the answer.
create or replace function find_answer(
  p_user_id bigint, p_key text, p_request_hash bytea, out outcome text, out answer text
)
language plpgsql as $$
begin
  if p_key is null then
    return;
  end if;
  select
    case when k.request_hash <> p_request_hash then 'key_reused' end,
    case when k.request_hash = p_request_hash then k.answer end
  into outcome, answer
  from idempotency_keys k
  where k.user_id = p_user_id and k.key = p_key and k.created_at > now() - interval '24 hours';
end
$$;
