-- Returns the ids of the user's bookmarks that match every given tag name. A bookmark matches a name if it has the tag
-- with this normalized name, or a tag below it. For example, `a/b` is below `a`.
create or replace function find_under(p_user_id bigint, p_keys text[]) returns bigint[]
-- Postgres plans each statement for the values of the call. So it uses a hash table if `v_tag_ids` is long.
language plpgsql stable set plan_cache_mode = force_custom_plan as $$
declare
  v_key text;
  v_tag_ids bigint[];
  v_is_index_faster boolean;
  -- the bookmarks that match `v_key`, and those that match all names so far
  v_matches bigint[];
  v_matches_of_all bigint[];
begin
  foreach v_key in array p_keys loop
    v_tag_ids := tag_ids_under(p_user_id, v_key);
    if v_tag_ids = '{}' then
      return '{}';
    end if;
    -- With the index of tags, Postgres compares each found bookmark with every tag in `v_tag_ids`. If these comparisons
    -- would take longer than a scan of all bookmarks of the user, scan all bookmarks. A scan spends on each bookmark
    -- about as much time as 30 comparisons take.
    select cardinality(v_tag_ids) * sum(bookmark_count) <= 30 * (select bookmark_count from accounts where user_id = p_user_id)
    into v_is_index_faster
    from tags
    where user_id = p_user_id and id = any (v_tag_ids);
    if v_is_index_faster then
      v_matches := array(select id from bookmarks where user_id = p_user_id and tag_ids && v_tag_ids);
    else
      v_matches := array(
        select id
        from bookmarks
        where user_id = p_user_id
          and exists (select from unnest(tag_ids) as carried (tag_id) where carried.tag_id = any (v_tag_ids))
      );
    end if;
    v_matches_of_all := case
      when v_matches_of_all is null then v_matches
      else array(select unnest(v_matches_of_all) intersect select unnest(v_matches))
    end;
  end loop;
  return v_matches_of_all;
end
$$;
