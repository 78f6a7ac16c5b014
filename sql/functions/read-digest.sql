-- Divides the bookmarks with ids above `p_after` and up to `p_last` into at most `p_parts` parts of about equal count.
-- Returns the parts in order as JSON text, each with its digest, a digest of all tags, and the position of a reader of
-- changes to whom everything in the response is known (see `read_changes`). The parts cover the whole range of ids.
-- There is at least one part, also if the range has no bookmarks.
--
-- A digest is the SHA-256 of one line for each bookmark (docs/contract.md, section 4.2). The planner avoids sorting, so
-- that each part is one read in the order of the key.
create or replace function read_digest(
  p_user_id bigint, p_after bigint, p_last bigint, p_parts integer,
  out parts text, out tags_digest text,
  out epoch bigint, out generation bigint, out change bigint, out bookmark_id bigint, out tag_id bigint
)
-- The function is stable, so that all its statements see the snapshot of the calling statement.
language plpgsql stable set enable_sort = off as $$
declare
  v_remaining bigint;
  v_size bigint;
  v_after bigint := p_after;
  v_up_to bigint;
  v_texts text[] := '{}';
  v_part record;
begin
  select page.epoch, page.generation, page.change, page.bookmark_id, page.tag_id
  into epoch, generation, change, bookmark_id, tag_id
  from read_changes(p_user_id, 0, 0, 0, 0, 0, 1, true) page;

  select count(*) into v_remaining from bookmarks where user_id = p_user_id and id > p_after and id <= p_last;
  for v_parts_left in reverse p_parts .. 1 loop
    v_size := ceil(v_remaining::numeric / v_parts_left);
    select encode(sha256(convert_to(coalesce(string_agg(line.text, e'\n' order by line.id), ''), 'UTF8')), 'hex') as digest,
      max(line.id) as last_id
    into v_part
    from (
      select b.id,
        b.id || ' '
          -- the same expression as in `render_bookmark`, without the quotes
          || substr(to_json(b.updated_at at time zone 'UTC' + interval '1 microsecond')::text, 2, 23) || 'Z '
          -- Most bookmarks have few tags. A subquery for each bookmark would take most of the time.
          || case cardinality(b.tag_ids)
            when 0 then ''
            when 1 then b.tag_ids[1]::text
            when 2 then least(b.tag_ids[1], b.tag_ids[2]) || ',' || greatest(b.tag_ids[1], b.tag_ids[2])
            when 3 then least(b.tag_ids[1], b.tag_ids[2], b.tag_ids[3]) || ','
              || greatest(
                least(b.tag_ids[1], b.tag_ids[2]),
                least(greatest(b.tag_ids[1], b.tag_ids[2]), b.tag_ids[3])
              ) || ','
              || greatest(b.tag_ids[1], b.tag_ids[2], b.tag_ids[3])
            else (select string_agg(tag.id::text, ',' order by tag.id) from unnest(b.tag_ids) as tag (id))
          end as text
      from bookmarks b
      where b.user_id = p_user_id and b.id > v_after and b.id <= p_last
      order by b.id
      limit v_size
    ) line;
    v_remaining := v_remaining - v_size;
    v_up_to := case when v_remaining = 0 then p_last else v_part.last_id end;
    v_texts := v_texts || (
      '{"after_id":' || v_after || ',"up_to_id":' || v_up_to || ',"count":' || v_size
      || ',"digest":"' || v_part.digest || '"}'
    );
    v_after := v_up_to;
    exit when v_remaining = 0;
  end loop;
  parts := array_to_string(v_texts, ',');

  select encode(sha256(convert_to(coalesce(string_agg(t.id || ' ' || t.name, e'\n' order by t.id), ''), 'UTF8')), 'hex')
  into tags_digest
  from tags t
  where t.user_id = p_user_id;
end
$$;
