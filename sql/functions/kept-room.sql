-- Returns how many bytes are left for the responses that are kept for a user's idempotency keys. All these responses
-- together may take at most `limit_of('kept_bytes')` (docs/contract.md, decision 33).
create or replace function kept_room(p_user_id bigint) returns bigint
language plpgsql stable as $$
begin
  return (select limit_of('kept_bytes') - kept_bytes from accounts where user_id = p_user_id);
end
$$;
