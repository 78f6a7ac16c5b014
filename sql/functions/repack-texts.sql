-- Puts the search texts of bookmarks that were edited, or deleted, right in the blocks that hold them. Under the account's
-- lock only.
create or replace function repack_texts(p_user_id bigint, p_ids bigint[]) returns void
-- Each statement has a whole key.
language plpgsql set plan_cache_mode = force_generic_plan set enable_sort = off set enable_seqscan = off as $$
declare
  v_last bigint;
  v_ids bigint[];
  v_texts text;
begin
  for v_last in
    select distinct (
      select last_id from search_blocks where user_id = p_user_id and last_id >= edited.id order by last_id limit 1
    )
    from unnest(p_ids) as edited (id)
  loop
    continue when v_last is null;
    select array_agg(id order by n), string_agg(line, e'\n' order by n) into v_ids, v_texts
    from (
      select packed.n, packed.id, case
        when packed.id = any (p_ids) then (
          select replace(search_text, e'\n', ' ') from bookmarks where user_id = p_user_id and id = packed.id
        )
        else packed.line
      end as line
      from search_blocks b
      cross join lateral unnest(b.ids, string_to_array(b.texts, e'\n')) with ordinality as packed (id, line, n)
      where b.user_id = p_user_id and b.last_id = v_last
    ) block
    where line is not null;
    if v_ids is null then
      delete from search_blocks where user_id = p_user_id and last_id = v_last;
    else
      update search_blocks set ids = v_ids, texts = v_texts where user_id = p_user_id and last_id = v_last;
    end if;
  end loop;
end
$$;
