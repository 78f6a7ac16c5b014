-- The epoch of the history that this database tells. Where the server is not the one that was found last, its whole
-- identity is compared: the same one was only restarted, another one begins a new epoch.
create or replace function current_epoch() returns bigint
language plpgsql volatile as $$
declare
  v_epoch bigint;
  v_timeline text := left(pg_walfile_name(pg_current_wal_lsn()), 8);
  v_database_id bigint := (select oid from pg_database where datname = current_database());
begin
  select number into v_epoch
  from epoch
  where server_started_at = pg_postmaster_start_time() and timeline = v_timeline and database_id = v_database_id;
  if found then
    return v_epoch;
  end if;

  insert into epoch as known (number, system_identifier, database_id, timeline, server_started_at)
  select time_floor(), system_identifier, v_database_id, v_timeline, pg_postmaster_start_time()
  from pg_control_system()
  on conflict (only_row) do update
  set number = case
      when (known.system_identifier, known.database_id, known.timeline)
        = (excluded.system_identifier, excluded.database_id, excluded.timeline)
      then known.number
      else greatest(excluded.number, known.number + 1)
    end,
    system_identifier = excluded.system_identifier,
    database_id = excluded.database_id,
    timeline = excluded.timeline,
    server_started_at = excluded.server_started_at
  returning number into v_epoch;
  return v_epoch;
end
$$;
