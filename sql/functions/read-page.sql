-- The bookmarks after one id and up to another, rising, as JSON texts with commas between.
--
-- The planner guesses how many bookmarks a user has from statistics that are
-- always older than the last import. Where it guesses few it would gather all that follow, sort them and keep a page:
-- 20,001 rows read for a page of 500, 750 ms for the first 500 of 1,000,000. It must not sort here, so that it can only
-- walk along the key.
create or replace function read_page(
  p_user_id bigint, p_after bigint, p_last bigint, p_limit integer,
  out bookmarks text, out count integer, out last_id bigint
)
language plpgsql stable set enable_sort = off as $$
begin
  select coalesce(string_agg(rendered, ','), ''),
    count(*), max(id)
  into bookmarks, count, last_id
  from (
    select id, render_bookmark(b) as rendered
    from bookmarks b
    where user_id = p_user_id and id > p_after and id <= p_last
    order by id
    limit p_limit
  ) page;
end
$$;
