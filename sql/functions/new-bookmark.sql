-- Returns a bookmark as the row of a new bookmark with this id and these tags. If the bookmark has no times, it gets
-- `p_now`.
create or replace function new_bookmark(
  p_bookmark bookmarks, p_user_id bigint, p_id bigint, p_tag_ids bigint[], p_tags text, p_now timestamptz
) returns bookmarks
language plpgsql immutable as $$
begin
  p_bookmark.user_id := p_user_id;
  p_bookmark.id := p_id;
  p_bookmark.created_at := coalesce(p_bookmark.created_at, p_now);
  p_bookmark.updated_at := coalesce(p_bookmark.updated_at, p_bookmark.created_at);
  p_bookmark.tag_ids := p_tag_ids;
  p_bookmark.tags := p_tags;
  return p_bookmark;
end
$$;
