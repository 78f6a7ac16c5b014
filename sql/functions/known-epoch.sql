-- Returns the epoch if the server and the database are the same as when it was recorded, or null. It is stable, and so
-- cheaper than a function that may write. The path of the table's file contains the database's id, so a copy of the
-- database is noticed without a query of the catalog.
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
