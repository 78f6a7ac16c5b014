-- Returns the `updated_at` of a bookmark after a change. Clients compare `updated_at` as a version, so it must rise
-- with each change. So the function returns the current time or, if that is not later than the previous `updated_at`,
-- the millisecond after the previous one. There is one exception: if the previous `updated_at` is the last millisecond
-- of the year 9999, no later time is valid. The function then returns the current time.
--
-- An update of a distributed table may call only immutable functions. `date_trunc` is only `stable`, because days
-- depend on the time zone. Milliseconds do not, so this function may be `immutable`.
create or replace function next_updated_at(p_updated_at timestamptz, p_now timestamptz) returns timestamptz
language sql immutable as $$
  select case
    when p_updated_at < '9999-12-31T23:59:59.999Z'
    then greatest(date_trunc('milliseconds', p_now), p_updated_at + interval '1 millisecond')
    else date_trunc('milliseconds', p_now)
  end
$$;
