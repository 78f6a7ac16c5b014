-- Returns the least value that a new id or revision may have now. This value was 0 at the beginning of 2026 and rises
-- by 200,000 every tenth of a second. So ids stay below 2^53 for 142 years.
--
-- A database that was restored or promoted may not know the latest ids that were assigned before the restore or the
-- promotion. Those ids are below the present value of this function, so new ids are higher.
create or replace function min_id_now() returns bigint
language sql volatile as $$
  -- 17672256000 is the beginning of 2026 in tenths of a second since 1970.
  select ((date_part('epoch', clock_timestamp()) * 10)::bigint - 17672256000) * limit_of('ids_per_tick')
$$;
