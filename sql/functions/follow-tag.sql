-- Has the bookmarks that carry a tag follow its rename or deletion. Up to 500 are rewritten at once. More would hold the
-- account's lock for long: then the tag is noted as stale, every reader renders the tags of bookmarks that carry it anew,
-- and `refresh_tags` rewrites them by and by. Under the account's lock only.
create or replace function follow_tag(p_user_id bigint, p_tag_id bigint, p_bookmarks bigint) returns void
language plpgsql as $$
declare
  v_carrying bigint[];
begin
  if p_bookmarks > 500 then
    update accounts
    set stale_tags = array_append(array_remove(stale_tags, p_tag_id), p_tag_id), tags_fresh_to = 0
    where user_id = p_user_id;
  elsif p_bookmarks > 0 then
    v_carrying := array(select id from bookmarks where user_id = p_user_id and tag_ids @> array[p_tag_id]);
    perform rewrite_tags(p_user_id, v_carrying);
  end if;
end
$$;
