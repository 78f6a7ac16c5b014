-- Returns the bookmarks with these ids, in the order of the given array, as JSON texts separated by commas. The texts
-- have about `p_bytes` bytes in total, but there is at least one text unless the array is empty. `count` is the number
-- of the returned bookmarks. All bookmarks must exist, so the caller must have read the ids in the same snapshot.
--
-- The function first renders every bookmark that takes no more than its share of the bytes. If no bookmark takes more,
-- and the texts fit, it returns the texts. Otherwise it estimates with `bookmark_bytes` how many bookmarks may fit,
-- renders only these, and returns those that really fit. The function uses subqueries, because the planner could turn a
-- join into a scan of all bookmarks of the user.
create or replace function render_bookmarks(
  p_user_id bigint, p_ids bigint[], p_bytes integer, out bookmarks text, out count integer
)
language plpgsql stable as $$
declare
  v_rendered_count integer;
begin
  bookmarks := '';
  count := cardinality(p_ids);
  if count = 0 then
    return;
  end if;
  select coalesce(string_agg(rendered, ',' order by place), ''), count(rendered) into bookmarks, v_rendered_count
  from (
    select requested.place, (
      select case
          when bookmark_bytes(row(b.*)::bookmarks) <= p_bytes / count
          then render_bookmark(row(b.*)::bookmarks)
        end
      from bookmarks b
      where b.user_id = p_user_id and b.id = requested.id
    ) as rendered
    from unnest(p_ids) with ordinality as requested (id, place)
    -- Without `offset 0`, the planner would run the subquery twice for each row, once for each aggregate.
    offset 0
  ) page;
  if v_rendered_count = count and octet_length(bookmarks) <= p_bytes then
    return;
  end if;

  select string_agg(rendered, ',' order by place), count(*) into bookmarks, count
  from (
    select place, rendered, sum(octet_length(rendered)) over (order by place rows unbounded preceding) as bytes
    from (
      select stored.place, (
        select render_bookmark(row(b.*)::bookmarks)
        from bookmarks b
        where b.user_id = p_user_id and b.id = stored.id
      ) as rendered
      from (
        select place, id, sum(bytes) over (order by place rows between unbounded preceding and 1 preceding) as bytes_before
        from (
          select requested.place, requested.id, (
            select bookmark_bytes(row(b.*)::bookmarks)
            from bookmarks b
            where b.user_id = p_user_id and b.id = requested.id
          ) as bytes
          from unnest(p_ids) with ordinality as requested (id, place)
        ) sized
      ) stored
      where coalesce(bytes_before, 0) < p_bytes
    ) candidates
  ) page
  -- The second condition is true only for the first bookmark, which is returned even if it is larger than `p_bytes`.
  where bytes <= p_bytes or bytes = octet_length(rendered);
end
$$;
