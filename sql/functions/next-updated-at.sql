-- The `updated_at` of a bookmark after a change: now, but later than before, because clients compare it as a version. The
-- last millisecond of the year 9999 has none after it that could be shown; it is followed by now.
-- It is `immutable`, since milliseconds depend on no time zone: an update of a distributed table calls nothing less.
create or replace function next_updated_at(p_updated_at timestamptz, p_now timestamptz) returns timestamptz
language sql immutable as $$
  select case
    when p_updated_at < '9999-12-31T23:59:59.999Z'
    then greatest(date_trunc('milliseconds', p_now), p_updated_at + interval '1 millisecond')
    else date_trunc('milliseconds', p_now)
  end
$$;
