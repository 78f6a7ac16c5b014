-- Renders a time: UTC, ISO 8601 with milliseconds and Z. The added microsecond keeps `to_json` from dropping trailing
-- zeros of the fraction. The time is first cut to milliseconds, because otherwise the microsecond could raise them.
-- `to_char` would cost more.
create or replace function render_time(p_time timestamptz) returns text
language sql stable as $$
  select substr(
    to_json(date_trunc('milliseconds', p_time at time zone 'UTC') + interval '1 microsecond')::text, 2, 23
  ) || 'Z'
$$;
