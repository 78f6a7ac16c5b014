-- Renders a time as ISO 8601 in UTC with milliseconds, for example `2026-01-31T12:00:00.000Z`. `to_json` is faster than
-- `to_char`, but drops trailing zeros of a fraction. So the time is cut to milliseconds, a microsecond is added, and
-- its digits and the quotes of the JSON text are cut off.
create or replace function render_time(p_time timestamptz) returns text
language sql stable as $$
  select substr(
    to_json(date_trunc('milliseconds', p_time at time zone 'UTC') + interval '1 microsecond')::text, 2, 23
  ) || 'Z'
$$;
