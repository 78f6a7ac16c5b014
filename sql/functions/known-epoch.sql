-- The epoch, where the server and the database are those that it was found for last; null otherwise. Stable, and so cheaper
-- than a function that may write. The file of the table names the database, of which a copy has another, without a look
-- into the catalog.
create or replace function known_epoch() returns bigint
language plpgsql stable as $$
begin
  return (
    select number
    from epoch
    where server_started_at = pg_postmaster_start_time()
      and timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)
      and file_path = pg_relation_filepath('epoch')
  );
end
$$;
