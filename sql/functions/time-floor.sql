-- The least id and change number that may be given now: 2,000,000 for each second since 2026, in steps of a tenth. Below
-- 2^53 that lasts for 142 years. What a database forgets when it is restored or promoted was given before, so it lies
-- below: later ids are above all earlier ones, whatever a dump brings back. A second that gives more than 2,000,000 ids
-- runs ahead of time by less than any restore takes.
create or replace function time_floor() returns bigint
language sql volatile as $$
  select ((date_part('epoch', clock_timestamp()) * 10)::bigint - 17672256000) * 200000
$$;
