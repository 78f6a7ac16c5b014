-- Returns the lowest id and revision that may be given now. It rises by 200,000 with each tenth of a second since 2026.
-- Ids stay below 2^53 for 142 years. A restored or promoted database may not know the last ids that were given before.
-- But those ids are below this value, so new ids are higher than all earlier ones.
create or replace function min_id_now() returns bigint
language sql volatile as $$
  select ((date_part('epoch', clock_timestamp()) * 10)::bigint - 17672256000) * 200000
$$;
