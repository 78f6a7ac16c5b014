-- Returns the `updated_at` of a bookmark after a change. It is the current time, but always later than before, because
-- clients compare it as a version. The one exception is the last millisecond of the year 9999. It has no valid
-- successor, so the current time replaces it.
--
-- An update of a distributed table may call only immutable functions. Postgres's `date_trunc` of a time is only
-- `stable`, but milliseconds do not depend on the time zone. So this function may be `immutable`.
create or replace function next_updated_at(p_updated_at timestamptz, p_now timestamptz) returns timestamptz
language sql immutable as $$
  select case
    when p_updated_at < '9999-12-31T23:59:59.999Z'
    then greatest(date_trunc('milliseconds', p_now), p_updated_at + interval '1 millisecond')
    else date_trunc('milliseconds', p_now)
  end
$$;
