-- Packs the search texts of a user's newest bookmarks into blocks (see the table `search_blocks`). Texts that would not
-- fill a block stay unpacked. The caller must hold the lock on the account's row.
create or replace function pack_texts(p_user_id bigint) returns void
-- Sorting is off, so that Postgres reads in the order of the key, whatever the statistics say. Any other plan reads all
-- bookmarks of the user.
language plpgsql set enable_sort = off set enable_seqscan = off as $$
declare
  v_packed_to bigint;
  v_read_count integer;
  v_fitting_count integer;
  v_ids bigint[];
  v_texts text[];
begin
  select last_id into v_packed_to from search_blocks where user_id = p_user_id order by last_id desc limit 1;
  v_packed_to := coalesce(v_packed_to, 0);
  loop
    -- A block holds up to about 7,600 bytes, which fill a page. Each text counts 15 bytes more than its length, for its
    -- id and its size. The first text always fits: if it is longer than a page, it gets a block of its own, and
    -- Postgres stores it outside the page.
    select count(*), count(*) filter (where fits),
      array_agg(id order by id desc) filter (where fits),
      array_agg(line order by id desc) filter (where fits)
    into v_read_count, v_fitting_count, v_ids, v_texts
    from (
      select id, line, id = min(id) over () or sum(octet_length(line) + 15) over in_order <= 7600 as fits
      from (
        select id, search_text as line
        from bookmarks
        where user_id = p_user_id and id > v_packed_to
        order by id
        limit limit_of('block_bookmarks')
      ) next
      window in_order as (order by id rows unbounded preceding)
    ) counted;
    -- All remaining texts were read, and they do not fill a block.
    exit when v_read_count < limit_of('block_bookmarks') and v_fitting_count = v_read_count;
    insert into search_blocks (user_id, last_id, ids, texts) values (p_user_id, v_ids[1], v_ids, v_texts);
    insert into search_signatures (user_id, last_id) values (p_user_id, v_ids[1]);
    v_packed_to := v_ids[1];
  end loop;
  update accounts set unpacked = v_read_count where user_id = p_user_id;
end
$$;
