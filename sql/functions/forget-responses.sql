-- Deletes the responses that are kept under these keys of a user and are at least 24 hours old. The caller must hold
-- the lock on the account's row.
create or replace function forget_responses(p_user_id bigint, p_keys text[]) returns void
language plpgsql as $$
begin
  with forgotten as (
    delete from idempotency_keys where user_id = p_user_id and key = any (p_keys) and created_at <= now() - interval '24 hours'
    returning bytes
  )
  update accounts
  set kept_bytes = kept_bytes - (select coalesce(sum(bytes), 0) from forgotten)
  where user_id = p_user_id;
end
$$;
