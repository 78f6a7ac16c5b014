-- Begins the staging of an import: `import_busy` while the user has another one, `import_full` where all users together
-- would pass the cap of staged bytes. The lock makes that sum exact; large imports are rare enough to wait for it.
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
  perform pg_advisory_xact_lock(hashtextextended('imports.bytes', 0));
  if p_bytes + (select coalesce(sum(bytes), 0) from imports where state in ('receiving', 'queued')) > p_staged_limit then
    outcome := 'import_full';
    return;
  end if;
  insert into imports (user_id, id, bytes) values (p_user_id, p_import_id, p_bytes)
  on conflict (user_id) where state in ('receiving', 'queued') do nothing;
  if not found then
    outcome := 'import_busy';
  end if;
end
$$;
