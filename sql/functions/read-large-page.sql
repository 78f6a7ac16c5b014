-- Returns the bookmarks after one id and up to another, by ascending id, as JSON texts with commas between. They have
-- at most `p_bytes` bytes in total, but it returns at least one bookmark. `read_page` calls it, and the notes on plans
-- in read-page.sql apply here too. The stored sizes limit which bookmarks are rendered. Then the rendered sizes limit
-- the page.
create or replace function read_large_page(
  p_user_id bigint, p_after bigint, p_last bigint, p_bytes integer,
  out bookmarks text, out count integer, out last_id bigint
)
language plpgsql stable set enable_sort = off as $$
declare
  v_last bigint;
begin
  select max(id) into v_last
  from (
    select id,
      sum(bookmark_bytes(row(b.*)::bookmarks))
        over (order by id rows between unbounded preceding and 1 preceding) as before
    from bookmarks b
    where user_id = p_user_id and id > p_after and id <= p_last
  ) stored
  where coalesce(before, 0) < p_bytes;

  select string_agg(rendered, ','), count(*), max(id) into bookmarks, count, last_id
  from (
    select id, rendered, sum(octet_length(rendered)) over (order by id rows unbounded preceding) as bytes
    from (
      select id, render_bookmark(row(b.*)::bookmarks) as rendered
      from bookmarks b
      where user_id = p_user_id and id > p_after and id <= v_last
    ) candidates
  ) page
  where bytes <= p_bytes or bytes = octet_length(rendered);
end
$$;
