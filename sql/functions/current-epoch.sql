-- The epoch of the history that this node tells; epochs of two nodes are never the same, as `time_floor` is a multiple of
-- 200,000. Where the server is not the one that was found last, its whole identity is compared: the same one was only
-- restarted, another one begins a new epoch.
create or replace function current_epoch() returns bigint
language plpgsql volatile as $$
declare
  v_epoch bigint;
  v_floor bigint := time_floor();
  v_system_identifier bigint;
  v_node integer;
  v_timeline text := left(pg_walfile_name(pg_current_wal_lsn()), 8);
  v_database_id bigint := (select oid from pg_database where datname = current_database());
begin
  select number into v_epoch
  from epoch
  where server_started_at = pg_postmaster_start_time() and timeline = v_timeline and database_id = v_database_id;
  if found then
    return v_epoch;
  end if;

  v_node := local_node();
  select system_identifier into v_system_identifier from pg_control_system();
  insert into epoch as known (node, number, system_identifier, database_id, timeline, server_started_at)
  values (v_node, v_floor + v_node, v_system_identifier, v_database_id, v_timeline, pg_postmaster_start_time())
  on conflict (node) do update
  set number = case
      when (known.system_identifier, known.database_id, known.timeline)
        = (excluded.system_identifier, excluded.database_id, excluded.timeline)
      then known.number
      else greatest(excluded.number, known.number + 200000)
    end,
    system_identifier = excluded.system_identifier,
    database_id = excluded.database_id,
    timeline = excluded.timeline,
    server_started_at = excluded.server_started_at
  returning number into v_epoch;
  return v_epoch;
end
$$;
