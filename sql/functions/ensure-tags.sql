-- Returns the ids of the tags with these names, and creates the missing ones. `p_keys` holds the normalized names,
-- which must be distinct. Returns null if the account would then have more than `p_tag_limit` tags. The caller must
-- hold the lock on the account's row.
create or replace function ensure_tags(p_user_id bigint, p_names text[], p_keys text[], p_tag_limit integer) returns bigint[]
language plpgsql as $$
declare
  v_ids bigint[];
  v_existing_keys text[];
  v_missing_count integer;
  v_floor bigint;
  v_last_id bigint;
begin
  select coalesce(array_agg(id), '{}'), coalesce(array_agg(name_key), '{}') into v_ids, v_existing_keys
  from tags
  where user_id = p_user_id and name_key = any (p_keys);
  v_missing_count := cardinality(p_keys) - cardinality(v_ids);
  if v_missing_count = 0 then
    return v_ids;
  end if;

  update accounts set tag_count = tag_count + v_missing_count
  where user_id = p_user_id and tag_count + v_missing_count <= p_tag_limit
  returning id_floor into v_floor;
  if not found then
    return null;
  end if;

  with created as (
    insert into tags (user_id, id, name, name_key)
    select p_user_id, next_id('tags_id_seq', v_floor), requested.name, requested.key
    from unnest(p_names, p_keys) as requested (name, key)
    where requested.key <> all (v_existing_keys)
    returning id
  )
  select v_ids || array_agg(id), max(id) into v_ids, v_last_id from created;
  perform raise_high_water_mark(p_user_id, v_last_id);
  return v_ids;
end
$$;
