-- Returns the bookmarks with ids above `p_after` and up to `p_last`, in ascending order, as JSON texts separated by
-- commas. The texts have at most `p_bytes` bytes in total. But if the first bookmark is larger, it is returned alone.
-- Only `read_page` calls this function, and the notes on plans in read-page.sql apply here too. The function first
-- estimates with `bookmark_bytes` how many bookmarks may fit, and renders only these. Then it returns those that really
-- fit.
create or replace function read_large_page(
  p_user_id bigint, p_after bigint, p_last bigint, p_bytes integer,
  out bookmarks text, out count integer, out last_id bigint
)
language plpgsql stable set enable_sort = off as $$
declare
  v_last_candidate bigint;
begin
  select max(id) into v_last_candidate
  from (
    select id,
      sum(bookmark_bytes(row(b.*)::bookmarks))
        over (order by id rows between unbounded preceding and 1 preceding) as bytes_before
    from bookmarks b
    where user_id = p_user_id and id > p_after and id <= p_last
  ) stored
  where coalesce(bytes_before, 0) < p_bytes;

  select string_agg(rendered, ','), count(*), max(id) into bookmarks, count, last_id
  from (
    select id, rendered, sum(octet_length(rendered)) over (order by id rows unbounded preceding) as bytes
    from (
      select id, render_bookmark(row(b.*)::bookmarks) as rendered
      from bookmarks b
      where user_id = p_user_id and id > p_after and id <= v_last_candidate
    ) candidates
  ) page
  -- The second condition is true only for the first bookmark, which is returned even if it is larger than `p_bytes`.
  where bytes <= p_bytes or bytes = octet_length(rendered);
end
$$;
