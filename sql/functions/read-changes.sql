-- Returns a page of the changes to a user's bookmarks and tags after a position. All changes come from one snapshot.
-- The page has at most `p_limit` bookmarks and tags, and about 1 MiB of bookmarks. It holds first the changed bookmarks
-- and tags by revision, then the new bookmarks by id, then the new tags by id.
--
-- A position consists of the epoch, the account's generation (its number of `replace` imports), the last revision that
-- the reader has received, and the highest ids of the bookmarks and tags that the reader has received. `reset` is true
-- if the given position is not valid any more. The page then starts from the beginning. With `p_from_now`, the page is
-- empty, and the returned position is the end of all present changes.
--
-- A reader that continues until `has_more` is false misses nothing. If a bookmark or tag changes after it was sent, its
-- new revision is above the revision in the reader's position, so the bookmark or tag is sent again. A changed bookmark
-- with an id above the id in the position is not sent by revision, because its latest state is sent later, by id.
-- Changed tags are always sent by revision, because a bookmark on the page may have a tag whose id is above the id in
-- the position.
create or replace function read_changes(
  p_user_id bigint, p_epoch bigint, p_generation bigint,
  p_change bigint, p_bookmark_id bigint, p_tag_id bigint,
  p_limit integer, p_from_now boolean,
  out reset boolean, out bookmarks text, out deleted text, out tags text, out deleted_tags text,
  out epoch bigint, out generation bigint, out change bigint, out bookmark_id bigint, out tag_id bigint,
  out has_more boolean, out is_empty boolean
)
-- The function is stable, so that all its statements see the snapshot of the calling statement.
language plpgsql stable set enable_sort = off as $$
declare
  v_last_change bigint;
  v_floor bigint;
  v_remaining_limit integer := p_limit;
  v_bytes bigint := 0;
  v_page record;
begin
  epoch := coalesce(known_epoch(), current_epoch());
  select a.last_change, a.changes_floor, a.generation into v_last_change, v_floor, generation
  from accounts a
  where a.user_id = p_user_id;

  bookmarks := '';
  deleted := '';
  tags := '';
  deleted_tags := '';
  has_more := false;
  reset := not p_from_now and (
    p_epoch <> epoch and not knows_epoch(p_epoch) or p_generation is distinct from generation
    or p_change < v_floor or p_change > v_last_change
  );
  change := p_change;
  bookmark_id := p_bookmark_id;
  tag_id := p_tag_id;
  -- Most calls come from polls, and find nothing new. They end here.
  if not reset and change = v_last_change then
    perform from bookmarks b where b.user_id = p_user_id and b.id > p_bookmark_id order by b.id limit 1;
    if not found then
      perform from tags t where t.user_id = p_user_id and t.id > p_tag_id order by t.id limit 1;
      if not found then
        is_empty := true;
        return;
      end if;
    end if;
  end if;
  if reset or p_from_now then
    change := v_last_change;
    bookmark_id := 0;
    tag_id := 0;
  end if;
  if p_from_now then
    select coalesce(max(b.id), 0) into bookmark_id from bookmarks b where b.user_id = p_user_id;
    select coalesce(max(t.id), 0) into tag_id from tags t where t.user_id = p_user_id;
    is_empty := true;
    return;
  end if;

  if change < v_last_change then
    select * into v_page from read_changed(p_user_id, change, bookmark_id, v_remaining_limit);
    bookmarks := v_page.bookmarks;
    deleted := v_page.deleted;
    tags := v_page.tags;
    deleted_tags := v_page.deleted_tags;
    v_remaining_limit := v_remaining_limit - v_page.count;
    v_bytes := octet_length(bookmarks);
    -- `last_number` is null if a `replace` import has deleted all rows of `changes` after the position. The reader then
    -- continues after `v_last_change`.
    change := coalesce(v_page.last_number, v_last_change);
    has_more := v_page.has_more;
  end if;

  if not has_more and v_remaining_limit > 0 and v_bytes < limit_of('page_bytes') then
    -- 2^53 - 1 is the highest possible id.
    select * into v_page
    from read_page(p_user_id, bookmark_id, 9007199254740991, v_remaining_limit, (limit_of('page_bytes') - v_bytes)::integer);
    if v_page.count > 0 then
      bookmarks := concat_ws(',', nullif(bookmarks, ''), v_page.bookmarks);
      bookmark_id := v_page.last_id;
      v_remaining_limit := v_remaining_limit - v_page.count;
    end if;
    has_more := v_page.has_more;
  else
    -- This statement does not use `exists`, because `exists` would drop the order. The planner could then scan the table
    -- from its beginning, through the rows of other users.
    has_more := has_more or (
      select b.id
      from bookmarks b
      where b.user_id = p_user_id and b.id > read_changes.bookmark_id
      order by b.id
      limit 1
    ) is not null;
  end if;

  if not has_more and v_remaining_limit > 0 then
    select string_agg(render_tag(page.id, page.name), ',' order by page.id) as tags, max(page.id) as last_id,
      count(*) as count
    into v_page
    from (
      select t.id, t.name
      from tags t
      where t.user_id = p_user_id and t.id > tag_id
      order by t.id
      limit v_remaining_limit
    ) page;
    if v_page.count > 0 then
      tags := concat_ws(',', nullif(tags, ''), v_page.tags);
      tag_id := v_page.last_id;
    end if;
  end if;
  has_more := has_more or (
    select t.id from tags t where t.user_id = p_user_id and t.id > read_changes.tag_id order by t.id limit 1
  ) is not null;
  is_empty := bookmarks = '' and deleted = '' and tags = '' and deleted_tags = '' and not reset;
end
$$;
