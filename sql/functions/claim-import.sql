-- Claims a large import for a worker (outcome `claimed`), and deletes the batches that an earlier worker prepared. If
-- workers have already begun the import `p_max_attempts` times, the function cancels it instead (outcome `given up`).
--
-- If the import is not queued, or if another worker holds the import's lease or the lock on the import's row, the
-- import stays as it is. The outcome is then the state of the import. The outcome is null if there is no such import.
create or replace function claim_import(
  p_user_id bigint, p_id uuid, p_lease_id uuid, p_max_attempts integer, p_lease_ms integer,
  out outcome text, out attempts smallint, out trace_parent text
)
language plpgsql as $$
declare
  v_until timestamptz := now() + p_lease_ms * interval '1 millisecond';
begin
  select i.attempts, i.trace_parent into attempts, trace_parent
  from imports i
  where i.user_id = p_user_id and i.id = p_id and i.state = 'queued'
    and (i.lease_until is null or i.lease_until < now())
  for update skip locked;
  if not found then
    select i.state, i.attempts, i.trace_parent into outcome, attempts, trace_parent
    from imports i
    where i.user_id = p_user_id and i.id = p_id;
  elsif attempts < p_max_attempts then
    outcome := 'claimed';
    attempts := attempts + 1;
    update imports i
    set attempts = i.attempts + 1, lease_id = p_lease_id, lease_until = v_until
    where i.user_id = p_user_id and i.id = p_id;
    delete from import_batches where user_id = p_user_id and import_id = p_id;
  else
    outcome := 'given up';
    perform end_import(p_user_id, p_id, 'cancelled');
  end if;
end
$$;
