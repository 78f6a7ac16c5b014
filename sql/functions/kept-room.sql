-- Returns how many bytes are left for the responses that are kept for a user's idempotency keys. All these responses
-- together may take at most 16 MiB (docs/contract.md, decision 33).
create or replace function kept_room(p_user_id bigint) returns bigint
language plpgsql stable as $$
begin
  return (select 16777216 - kept_bytes from accounts where user_id = p_user_id);
end
$$;
