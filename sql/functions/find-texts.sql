-- Returns the ids, newest first, of the bookmarks whose search text contains all terms and matches none of the `like`
-- patterns in `p_without`. The function first scans the newest bookmarks, which are not packed into a block yet. Then
-- it scans the blocks of `search_blocks`.
--
-- `p_terms` holds the longest terms, one to three, the longest first. `p_patterns` holds all other terms as `like`
-- patterns. `p_bits` holds one to eight positions of bits in the Bloom filter of a block. All of these bits are set if
-- a text of the block contains all terms. So a block is skipped if its filter lacks one of these bits. A block without
-- a filter is always read.
create or replace function find_texts(
  p_user_id bigint, p_terms text[], p_patterns text[], p_bits integer[], p_without text[]
)
  returns bigint[]
-- One plan serves all users: it reads the user's filters in descending order of `last_id`, and finds each block by its
-- key.
language plpgsql stable set plan_cache_mode = force_generic_plan
  set enable_sort = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_term_1 text := p_terms[1];
  v_term_2 text := p_terms[2];
  v_term_3 text := p_terms[3];
  -- For a term of one or two letters, `like` is faster than `strpos`.
  v_short_pattern text := case
    when length(v_term_1) <= 2 then '%' || regexp_replace(v_term_1, '([\\%_])', '\\\1', 'g') || '%'
  end;
  -- Most searches have only one term, of three or more letters. For such a search, only this term is tested.
  v_is_one_long_term boolean := v_term_2 is null and v_short_pattern is null and p_without is null;
  v_packed_to bigint;
  v_unpacked_matches bigint[];
begin
  select last_id into v_packed_to from search_blocks where user_id = p_user_id order by last_id desc limit 1;
  v_packed_to := coalesce(v_packed_to, 0);
  -- This statement uses an aggregate and no subquery, because a Citus cluster keeps no plan of a statement with a
  -- subquery.
  select array_agg(id order by id desc) into v_unpacked_matches
  from bookmarks
  where user_id = p_user_id and id > v_packed_to
    and matches_text(search_text, p_terms, p_patterns, p_without);
  return coalesce(v_unpacked_matches, array[]::bigint[]) || array(
    select id
    from (
      select unnest(ids) as id, unnest(texts) as line
      from (
        select block.ids, block.texts
        from search_signatures filter
        -- `offset 0` keeps the planner from rewriting the join. So Postgres finds each block by its key.
        cross join lateral (
          select ids, texts from search_blocks where user_id = p_user_id and last_id = filter.last_id offset 0
        ) block
        -- A missing filter excludes nothing, and neither does a position that is null.
        where filter.user_id = p_user_id and (
          get_bit(bits, p_bits[1]) = 0
          or get_bit(bits, p_bits[2]) = 0
          or get_bit(bits, p_bits[3]) = 0
          or get_bit(bits, p_bits[4]) = 0
          or get_bit(bits, p_bits[5]) = 0
          or get_bit(bits, p_bits[6]) = 0
          or get_bit(bits, p_bits[7]) = 0
          or get_bit(bits, p_bits[8]) = 0
        ) is not true
        order by filter.last_id desc
      ) blocks
    ) newest_first
    -- The `case` determines the order of the tests. The planner would order separate conditions by their estimated
    -- cost.
    where case
      when v_is_one_long_term then strpos(line, v_term_1) > 0
      else case when v_short_pattern is null then strpos(line, v_term_1) > 0 else line like v_short_pattern end
        and (v_term_2 is null or strpos(line, v_term_2) > 0)
        and (v_term_3 is null or strpos(line, v_term_3) > 0)
        and (p_patterns is null or line like all (p_patterns))
        and (p_without is null or not line like any (p_without))
    end
  );
end
$$;
