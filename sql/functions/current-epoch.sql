-- Returns the epoch of this node's history. If `known_epoch` does not know it, compares the database's identity with
-- the recorded one. If they are equal, the server only restarted or the table was rewritten, and the epoch stays.
-- Otherwise a new epoch begins. In both cases it records the present state, so that `known_epoch` knows it again.
--
-- Two nodes never have the same epoch: it is `min_id_now`, a multiple of 200,000, plus the number of the node's
-- group.
create or replace function current_epoch() returns bigint
language plpgsql volatile as $$
declare
  v_epoch bigint := known_epoch();
  v_system_identifier bigint;
  v_node integer;
  -- Computed before the insert, because Citus accepts no subquery in its values, and each node has another path.
  v_database_id bigint := (select oid from pg_database where datname = current_database());
  v_file_path text := pg_relation_filepath('epoch');
begin
  if v_epoch is not null then
    return v_epoch;
  end if;

  v_node := local_node();
  select system_identifier into v_system_identifier from pg_control_system();
  insert into epoch as known (
    node, number, system_identifier, database_id, timeline, server_started_at, file_path
  )
  values (
    v_node, min_id_now() + v_node, v_system_identifier,
    v_database_id, left(pg_walfile_name(pg_current_wal_lsn()), 8), pg_postmaster_start_time(), v_file_path
  )
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
    server_started_at = excluded.server_started_at,
    file_path = excluded.file_path
  returning number into v_epoch;
  return v_epoch;
end
$$;
