-- Renders a time: UTC, ISO 8601 with milliseconds and Z. The added microsecond keeps `to_json` from dropping trailing
-- zeros of the fraction. Anything finer than a millisecond is cut first, or 0.129999 would become 0.13. `to_char` would
-- cost more.
create or replace function render_time(p_time timestamptz) returns text
language sql stable as $$
  select substr(
    to_json(date_trunc('milliseconds', p_time at time zone 'UTC') + interval '1 microsecond')::text, 2, 23
  ) || 'Z'
$$;
