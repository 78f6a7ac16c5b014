-- Claims a staged import for one attempt, under a lease of so many milliseconds, or gives it up for good where it has had
-- `p_max_attempts`; the outcome is its state where neither happens: it is over, or another worker holds its lease or the
-- lock of its row. Null where there is none. What a worker before this one had staged is dropped.
create or replace function claim_import(
  p_user_id bigint, p_id uuid, p_lease_id uuid, p_max_attempts integer, p_lease_ms integer,
  out outcome text, out attempts smallint, out trace_parent text
)
language plpgsql as $$
declare
  v_until timestamptz := now() + p_lease_ms * interval '1 millisecond';
  v_may_run boolean;
begin
  select i.attempts < p_max_attempts into v_may_run
  from imports i
  where i.user_id = p_user_id and i.id = p_id and i.state = 'queued'
    and (i.lease_until is null or i.lease_until < now())
  for update skip locked;
  if not found then
    select i.state, i.attempts, i.trace_parent into outcome, attempts, trace_parent
    from imports i
    where i.user_id = p_user_id and i.id = p_id;
    return;
  end if;

  if v_may_run then
    outcome := 'claimed';
    update imports i
    set attempts = i.attempts + 1, lease_id = p_lease_id, lease_until = v_until
    where i.user_id = p_user_id and i.id = p_id
    returning i.attempts, i.trace_parent into attempts, trace_parent;
  else
    outcome := 'given up';
    update imports i
    set state = 'cancelled', touched_at = now(), lease_id = null, lease_until = null
    where i.user_id = p_user_id and i.id = p_id
    returning i.attempts, i.trace_parent into attempts, trace_parent;
    delete from import_chunks where user_id = p_user_id and import_id = p_id;
  end if;
  delete from import_pieces where user_id = p_user_id and import_id = p_id;
  delete from import_errors where user_id = p_user_id and import_id = p_id;
end
$$;
