-- Returns the lowest id and revision that may be given now: 2,000,000 for each second since 2026, in steps of a tenth
-- of a second. Ids stay below 2^53 for 142 years. A restored or promoted database may not know ids that were given
-- before. Those are lower, so later ids are still higher than all earlier ones.
create or replace function min_id_now() returns bigint
language sql volatile as $$
  select ((date_part('epoch', clock_timestamp()) * 10)::bigint - 17672256000) * 200000
$$;
