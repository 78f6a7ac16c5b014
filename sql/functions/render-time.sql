-- Renders a time as ISO 8601 in UTC with milliseconds, for example `2026-01-31T12:00:00.000Z`.
--
-- `to_json` is faster than `to_char`, but drops trailing zeros of a fraction. So the function cuts the time to
-- milliseconds and adds a microsecond. From the JSON text it then cuts off the quotes and the last three digits.
create or replace function render_time(p_time timestamptz) returns text
language sql stable as $$
  select substr(
    to_json(date_trunc('milliseconds', p_time at time zone 'UTC') + interval '1 microsecond')::text, 2, 23
  ) || 'Z'
$$;
