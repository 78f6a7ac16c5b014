-- works-with: 5
-- Earlier versions rewrote some bookmarks only some time after a tag was changed. From this version on, the request
-- that changes a tag rewrites all bookmarks with the tag. So this migration rewrites the bookmarks that are not up to
-- date. It also repairs older damage: ids of deleted tags in bookmarks, tags without a name, and wrong counts.

do $$
begin
  -- A new database has nothing to repair, and does not have the functions that the repair calls.
  if not exists (select from accounts) then
    return;
  end if;
  delete from tags where name_key = '';
  update bookmarks b
  set tag_ids = fresh.tag_ids, tags = fresh.tags
  from (
    select carrying.user_id, carrying.id,
      coalesce(array_agg(t.id) filter (where t.id is not null), '{}') as tag_ids,
      render_tags(string_agg(render_tag(t.id, t.name), ',' order by t.name_key)) as tags
    from bookmarks carrying
    cross join lateral unnest(carrying.tag_ids) as carried (tag_id)
    left join tags t on t.user_id = carrying.user_id and t.id = carried.tag_id
    group by carrying.user_id, carrying.id
  ) fresh
  where b.user_id = fresh.user_id and b.id = fresh.id
    and (b.tags <> fresh.tags or cardinality(b.tag_ids) <> cardinality(fresh.tag_ids));
  update tags t
  set bookmark_count = counted.bookmarks
  from (
    select t.user_id, t.id, count(carried.tag_id) as bookmarks
    from tags t
    left join (
      select user_id, unnest(tag_ids) as tag_id from bookmarks
    ) carried on carried.user_id = t.user_id and carried.tag_id = t.id
    group by t.user_id, t.id
  ) counted
  where t.user_id = counted.user_id and t.id = counted.id and t.bookmark_count <> counted.bookmarks;
  update accounts a
  set tag_count = counted.tags
  from (
    select a.user_id, count(t.id) as tags
    from accounts a
    left join tags t on t.user_id = a.user_id
    group by a.user_id
  ) counted
  where a.user_id = counted.user_id and a.tag_count <> counted.tags;
end
$$;

drop index accounts_stale_tags;
alter table accounts
  drop column stale_tags,
  drop column tags_fresh_to,
  drop column tags_refreshed_at;

drop function if exists current_tags(bigint, bigint[]);
drop function if exists gone_tags(bigint);
drop function if exists follow_tag(bigint, bigint, bigint);
drop function if exists refresh_tags(bigint, integer, integer);
drop function if exists rewrite_tags(bigint, bigint[]);
drop function if exists rename_tag(bigint, bytea, bigint, text, text);
drop function if exists delete_tag(bigint, bytea, bigint);
drop function if exists merge_tags(bigint, bytea, bigint, bigint, integer);
drop function if exists rename_tag(bigint, bytea, bigint, text, text, text, bytea);
drop function if exists delete_tag(bigint, bytea, bigint, text, bytea);
drop function if exists merge_tags(bigint, bytea, bigint, bigint, integer, text, bytea);
drop function if exists render_bookmark(bookmarks, bigint[], boolean);
