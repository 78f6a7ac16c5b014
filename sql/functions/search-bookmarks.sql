-- Returns a page of the bookmarks that match a search, in the order `p_sort`, as JSON texts separated by commas. The
-- page has at most `p_limit` bookmarks and `p_bytes` bytes, but at least one bookmark. `last_id` and `last_key`
-- are the position of the page's last bookmark in this order. `valid` says whether the token is valid.
--
-- `p_filter` holds the conditions on a bookmark, under the names that `searchFilter` uses (src/domain/search.ts). All
-- conditions are optional. `tags` contains the filter `tag`, too. `without_phrases` holds `like` patterns. Each
-- alternative in `any` holds `tags`, and the terms of the search together with its own as `terms`, `patterns` and
-- `bits`. find-texts.sql describes these, and `p_terms`, `p_patterns` and `p_bits`.
--
-- If `p_last_id` is null, the page begins at `p_offset`, and `total` is the number of all matches. Otherwise the page
-- begins after the position `p_last_id` and `p_last_key`, and matches are not counted. If a search requires no tag, an
-- index finds the position for `newest` and `oldest`, so that earlier rows are not read again. For `created` and
-- `created_oldest`, an index finds the position only if the search also has no terms. `updated` and `title` have no
-- index, because every added bookmark would need an entry in such an index. So each page in these orders reads all
-- matches.
--
-- Functions find the candidates first: by an index if the search requires a tag (`find_tagged`), and otherwise in the
-- blocks of `search_blocks` if it has terms (`find_texts`) or alternatives (`find_any`), unless an index finds the
-- position. Excluded phrases alone do not use the blocks, because nearly all bookmarks match. `find_matches` tests the
-- candidates for all other conditions. If a search has no conditions and no terms, `total` is the account's counter of
-- bookmarks.
create or replace function search_bookmarks(
  p_user_id bigint, p_token_hash bytea, p_terms text[], p_patterns text[], p_bits integer[], p_filter jsonb,
  p_sort text, p_offset bigint, p_last_id bigint, p_last_key text, p_limit integer, p_bytes integer,
  out valid boolean, out bookmarks text, out total bigint, out has_more boolean, out last_id bigint, out last_key text
)
-- One plan of each statement fits all calls. `find_matches` has the statement whose plan depends on the search.
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
  v_filter jsonb := p_filter;
  v_tag_keys text[];
  v_tag_ids bigint[];
  v_any jsonb;
  v_without text[];
  -- the bookmarks that match the conditions evaluated so far; null as long as none has been evaluated
  v_candidate_ids bigint[];
  v_ids_under bigint[];
  v_is_all boolean;
  -- How many matches are needed. Null means all of them, because they are counted.
  v_limit bigint := case when p_last_id is not null then p_limit + 1 end;
  v_ids bigint[];
  v_count integer;
begin
  perform from tokens where user_id = p_user_id and token_hash = p_token_hash and expires_at > now();
  valid := found;
  bookmarks := '';
  total := 0;
  has_more := false;

  -- From here on, `v_filter` holds the conditions that have not been evaluated.
  if v_filter ? 'tags' then
    v_tag_keys := array(select jsonb_array_elements_text(v_filter -> 'tags'));
    v_tag_ids := array(select id from tags where user_id = p_user_id and name_key = any (v_tag_keys));
    -- A required tag does not exist, so nothing matches.
    if cardinality(v_tag_ids) < cardinality(v_tag_keys) then
      return;
    end if;
    v_filter := v_filter - 'tags';
  end if;
  if v_filter ? 'any' then
    v_any := possible_alternatives(p_user_id, v_filter -> 'any');
    if v_any = '[]' then
      return;
    end if;
    v_filter := v_filter - 'any';
  end if;
  -- From here on, `v_candidate_ids` replaces the conditions that it was made from.
  if v_filter ? 'without_phrases' then
    v_without := array(select jsonb_array_elements_text(v_filter -> 'without_phrases'));
  end if;
  if v_tag_ids is not null then
    v_candidate_ids := find_tagged(p_user_id, v_tag_ids, p_terms, p_patterns, v_without);
  elsif p_last_id is null or p_sort not in ('newest', 'oldest') then
    if v_any is not null then
      v_candidate_ids := find_any(p_user_id, v_any, v_without);
      v_any := null;
    elsif cardinality(p_terms) > 0 then
      v_candidate_ids := find_texts(p_user_id, p_terms, p_patterns, p_bits, v_without);
    end if;
  end if;
  if v_candidate_ids is not null then
    p_terms := '{}';
    p_patterns := null;
    v_filter := v_filter - 'without_phrases';
  end if;
  if v_filter ? 'tag_under' then
    v_ids_under := find_under(p_user_id, array(select jsonb_array_elements_text(v_filter -> 'tag_under')));
    v_candidate_ids := case
      when v_candidate_ids is null then v_ids_under
      else array(select unnest(v_candidate_ids) intersect select unnest(v_ids_under))
    end;
    v_filter := v_filter - 'tag_under';
  end if;

  v_is_all := p_filter = '{}' and v_candidate_ids is null and cardinality(p_terms) = 0;
  if p_last_id is null and v_is_all then
    v_limit := p_offset + p_limit;
  end if;
  if v_candidate_ids is not null and v_any is null and cardinality(p_terms) = 0 and v_filter = '{}'
    and p_sort in ('newest', 'oldest')
  then
    -- `v_candidate_ids` holds all matches and nothing else. In these orders the ids are enough, so the bookmarks are not
    -- read.
    v_ids := array(
      select id
      from unnest(v_candidate_ids) id
      where p_last_id is null or case when p_sort = 'newest' then id < p_last_id else id > p_last_id end
      -- For `newest`, the first expression is null for all rows, so only the second one counts.
      order by case when p_sort = 'oldest' then id end, id desc
      limit v_limit
    );
  else
    v_ids := find_matches(
      p_user_id, p_terms, p_patterns, v_any, v_filter, v_candidate_ids, p_sort, p_last_id, p_last_key, v_limit
    );
  end if;

  if p_last_id is null then
    total := case
      when v_is_all then (select bookmark_count from accounts where user_id = p_user_id)
      else cardinality(v_ids)
    end;
    has_more := p_offset + p_limit < total;
    -- Positions in arrays are below 2^31, so positions above 2,000,000,000 are reduced to this number. No user has so
    -- many bookmarks, so the page is empty anyway.
    v_ids := v_ids[least(p_offset + 1, 2000000000)::integer:least(p_offset + p_limit, 2000000000)::integer];
  else
    has_more := cardinality(v_ids) > p_limit;
    v_ids := v_ids[1:p_limit];
  end if;
  select page.bookmarks, page.count into bookmarks, v_count from render_bookmarks(p_user_id, v_ids, p_bytes) page;
  has_more := has_more or v_count < cardinality(v_ids);
  last_id := v_ids[v_count];
  if p_sort not in ('newest', 'oldest') then
    select case p_sort
      when 'updated' then render_time(b.updated_at)
      when 'title' then title_key(row(b.*)::bookmarks)
      else render_time(b.created_at)
    end
    into last_key
    from bookmarks b
    where b.user_id = p_user_id and b.id = last_id;
  end if;
end
$$;
