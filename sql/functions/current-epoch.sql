-- Returns the present epoch of this node's database (see the table `epoch`). If `known_epoch` returns null, the
-- function compares the identity of the database with the recorded identity. If they are equal, only the server was
-- restarted or the table was rewritten, and the epoch stays. Otherwise a new epoch begins. In both cases the function
-- records the present state, so that `known_epoch` returns the epoch from then on.
--
-- Two nodes never have the same epoch. An epoch is a multiple of 200,000 plus the number of the node's group.
create or replace function current_epoch() returns bigint
language plpgsql volatile as $$
declare
  v_epoch bigint := known_epoch();
  v_system_identifier bigint;
  v_node integer;
  -- These two values are computed before the insert: Citus accepts no subquery in the values of an insert, and the path
  -- of the table's file differs from node to node.
  v_database_id bigint := (select oid from pg_database where datname = current_database());
  v_file_path text := pg_relation_filepath('epoch');
begin
  if v_epoch is not null then
    return v_epoch;
  end if;

  v_node := local_node();
  -- The timeline is the first eight characters of the name of a WAL file.
  select system_identifier into v_system_identifier from pg_control_system();
  insert into epoch as recorded (
    node, number, system_identifier, database_id, timeline, server_started_at, file_path
  )
  values (
    v_node, min_id_now() + v_node, v_system_identifier,
    v_database_id, left(pg_walfile_name(pg_current_wal_lsn()), 8), pg_postmaster_start_time(), v_file_path
  )
  on conflict (node) do update
  set number = case
      when (recorded.system_identifier, recorded.database_id, recorded.timeline)
        = (excluded.system_identifier, excluded.database_id, excluded.timeline)
      then recorded.number
      else greatest(excluded.number, recorded.number + limit_of('ids_per_tick'))
    end,
    system_identifier = excluded.system_identifier,
    database_id = excluded.database_id,
    timeline = excluded.timeline,
    server_started_at = excluded.server_started_at,
    file_path = excluded.file_path
  returning number into v_epoch;
  return v_epoch;
end
$$;
