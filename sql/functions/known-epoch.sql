-- Returns the recorded epoch of this node if the server and the database are certainly the same as when it was
-- recorded. Otherwise returns null, and only `current_epoch` can find the epoch. The table `epoch` is stored in a file
-- whose path contains the id of the database, so the path differs in a copy of the database. The function only reads.
-- So it can be `stable`, and is cheaper than `current_epoch`.
create or replace function known_epoch() returns bigint
language plpgsql stable as $$
begin
  return (
    select number
    from epoch
    -- The timeline is the first eight characters of the name of a WAL file.
    where server_started_at = pg_postmaster_start_time()
      and timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)
      and file_path = pg_relation_filepath('epoch')
  );
end
$$;
