-- Begins a large import, whose body is then staged in Postgres. `p_bytes` is the announced length of the body.
-- Outcomes:
-- - `import_busy`: another large import of the user is in progress.
-- - `import_unread`: earlier imports of the user have more than `limit_of('kept_bytes')` of errors that have not been
--   sent yet.
-- - `import_full`: the staged imports of all users on this node would exceed `p_staged_limit`.
--
-- The function takes an advisory lock, so that imports that begin at the same time cannot together exceed
-- `p_staged_limit`. Large imports are rare, so they seldom wait for each other here.
create or replace function begin_import(
  p_user_id bigint, p_token_hash bytea, p_import_id uuid, p_bytes bigint, p_staged_limit bigint,
  out outcome text
)
language plpgsql as $$
begin
  if not token_is_valid(p_user_id, p_token_hash) then
    outcome := 'token';
    return;
  end if;
  -- Errors that are kept for an idempotency key count in `accounts.kept_bytes` instead.
  if limit_of('kept_bytes') < (
    select sum(octet_length(errors)) from imports where user_id = p_user_id and idempotency_key is null
  ) then
    outcome := 'import_unread';
    return;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('imports.bytes', 0));
  if p_bytes + staged_bytes() > p_staged_limit then
    outcome := 'import_full';
    return;
  end if;
  insert into imports (user_id, id, is_staged, bytes) values (p_user_id, p_import_id, true, p_bytes)
  on conflict (user_id) where is_staged and state in ('receiving', 'queued') do nothing;
  if not found then
    outcome := 'import_busy';
  end if;
end
$$;
