-- Updates the blocks that hold the search texts of edited or deleted bookmarks. If the text of a bookmark was edited,
-- the block loses its Bloom filter. If texts were only deleted, the block keeps its filter, because the filter still
-- has all bits of the remaining texts. The caller must hold the lock on the account's row.
create or replace function repack_texts(p_user_id bigint, p_ids bigint[]) returns void
-- Each statement finds its rows by a complete key, so one plan fits all calls.
language plpgsql set plan_cache_mode = force_generic_plan set enable_sort = off set enable_seqscan = off as $$
declare
  v_last_id bigint;
  v_ids bigint[];
  v_texts text[];
  v_has_edited boolean;
begin
  -- The block of a bookmark is the first one whose `last_id` is at least the bookmark's id.
  for v_last_id in
    select distinct (
      select last_id from search_blocks where user_id = p_user_id and last_id >= changed.id order by last_id limit 1
    )
    from unnest(p_ids) as changed (id)
  loop
    -- Null stands for bookmarks that are in no block yet.
    continue when v_last_id is null;
    -- A deleted bookmark is not in `bookmarks` any more, so this query drops it from the block.
    select array_agg(id order by n), array_agg(line order by n), bool_or(id = any (p_ids))
    into v_ids, v_texts, v_has_edited
    from (
      select packed.n, packed.id, case
        when packed.id = any (p_ids) then (
          select search_text from bookmarks where user_id = p_user_id and id = packed.id
        )
        else packed.line
      end as line
      from search_blocks b
      cross join lateral unnest(b.ids, b.texts) with ordinality as packed (id, line, n)
      where b.user_id = p_user_id and b.last_id = v_last_id
    ) block
    where line is not null;
    if v_ids is null then
      delete from search_blocks where user_id = p_user_id and last_id = v_last_id;
      delete from search_signatures where user_id = p_user_id and last_id = v_last_id;
      continue;
    end if;
    update search_blocks set ids = v_ids, texts = v_texts where user_id = p_user_id and last_id = v_last_id;
    if v_has_edited then
      update search_signatures set bits = null, edits = edits + 1 where user_id = p_user_id and last_id = v_last_id;
    end if;
  end loop;
end
$$;
