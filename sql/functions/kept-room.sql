-- Returns how many more bytes of responses may be kept for a user's idempotency keys. The limit is 16 MiB
-- (decision 33).
create or replace function kept_room(p_user_id bigint) returns bigint
language plpgsql stable as $$
begin
  return (select 16777216 - kept_bytes from accounts where user_id = p_user_id);
end
$$;
