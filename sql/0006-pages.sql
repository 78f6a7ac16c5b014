-- Pages of a user's bookmarks, in the order of their key.
--
-- The planner guesses how many bookmarks a user has from statistics that are always older than the last import. Where it
-- guesses few it would gather all that follow, sort them and keep a page: 20,001 rows read for a page of 500, 750 ms for
-- the first 500 of 1,000,000. It must not sort here, so that it can only walk along the key.

-- The bookmarks after one id and up to another, rising, as JSON texts with commas between.
create function read_page(
  p_user_id bigint, p_after bigint, p_last bigint, p_limit integer,
  out bookmarks text, out count integer, out last_id bigint
)
language plpgsql stable set enable_sort = off as $$
begin
  select coalesce(string_agg(render_bookmark(id, url, title, comment, tags, created_at, updated_at), ','), ''),
    count(*), max(id)
  into bookmarks, count, last_id
  from (
    select id, url, title, comment, tags, created_at, updated_at
    from bookmarks
    where user_id = p_user_id and id > p_after and id <= p_last
    order by id
    limit p_limit
  ) page;
end
$$;

-- The newest bookmarks but so many, falling, as JSON texts with commas between.
create function read_newest(p_user_id bigint, p_offset bigint, p_limit integer) returns text
language plpgsql stable set enable_sort = off as $$
begin
  return (
    select coalesce(string_agg(render_bookmark(id, url, title, comment, tags, created_at, updated_at), ','), '')
    from (
      select id, url, title, comment, tags, created_at, updated_at
      from bookmarks
      where user_id = p_user_id
      order by id desc
      limit p_limit offset p_offset
    ) page
  );
end
$$;
