-- The bookmarks whose search text holds all terms, falling: those of the blocks, and the newest ones, which are in none yet.
-- The first term should be the longest; further ones than three come as patterns. Only in blocks that hold the first three
-- are the bookmarks tried one by one.
create or replace function find_texts(p_user_id bigint, p_terms text[], p_patterns text[]) returns bigint[]
-- The plan is the same for all: the user's blocks by their key, backward.
language plpgsql stable set plan_cache_mode = force_generic_plan
  set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_first text := p_terms[1];
  v_second text := p_terms[2];
  v_third text := p_terms[3];
  -- `strpos` skips by the length of what it looks for, `like` compares byte by byte: short terms are found sooner so.
  v_short text := case
    when length(v_first) <= 3 then '%' || regexp_replace(v_first, '([\\%_])', '\\\1', 'g') || '%'
  end;
  v_packed_to bigint;
begin
  select last_id into v_packed_to from search_blocks where user_id = p_user_id order by last_id desc limit 1;
  return array(
    select id
    from bookmarks
    where user_id = p_user_id and id > coalesce(v_packed_to, 0)
      and strpos(search_text, v_first) > 0
      and (v_second is null or strpos(search_text, v_second) > 0)
      and (v_third is null or strpos(search_text, v_third) > 0)
      and (p_patterns is null or search_text like all (p_patterns))
    order by id desc
  ) || array(
    select id
    from (
      select unnest(ids) as id, unnest(string_to_array(texts, e'\n')) as line
      from (
        select ids, texts
        from search_blocks
        where user_id = p_user_id
          and case when v_short is null then strpos(texts, v_first) > 0 else texts like v_short end
          and (v_second is null or strpos(texts, v_second) > 0)
          and (v_third is null or strpos(texts, v_third) > 0)
        order by last_id desc
      ) blocks
    ) newest_first
    where case when v_short is null then strpos(line, v_first) > 0 else line like v_short end
      and (v_second is null or strpos(line, v_second) > 0)
      and (v_third is null or strpos(line, v_third) > 0)
      and (p_patterns is null or line like all (p_patterns))
  );
end
$$;
