-- Chooses those of the requested bookmarks that exist and may be changed. If `p_if_updated_at` is given, a bookmark may
-- be changed only if its `updated_at` equals the time in this array at the position of the bookmark's id in `p_ids`.
-- `report` is a part of the JSON response. It holds the number of chosen ids (`count`), and the ids that were not
-- chosen, in the requested order: in `missing` if the bookmark does not exist, and in `conflicts` if its `updated_at`
-- differs. The caller must hold the lock on the account's row.
create or replace function choose_bookmarks(
  p_user_id bigint, p_ids bigint[], p_if_updated_at timestamptz[], out chosen bigint[], out report text
)
language plpgsql as $$
declare
  v_existing_ids bigint[];
  v_existing_times timestamptz[];
  v_missing bigint[];
  v_conflicts bigint[];
begin
  select array_agg(id), array_agg(updated_at) into v_existing_ids, v_existing_times
  from bookmarks
  where user_id = p_user_id and id = any (p_ids);
  select
    coalesce(
      array_agg(requested.id order by position)
        filter (where if_updated_at is null and existing.id is not null or existing.updated_at = if_updated_at),
      '{}'
    ),
    coalesce(array_agg(requested.id order by position) filter (where existing.updated_at <> if_updated_at), '{}'),
    coalesce(array_agg(requested.id order by position) filter (where existing.id is null), '{}')
  into chosen, v_conflicts, v_missing
  from unnest(p_ids, p_if_updated_at) with ordinality as requested (id, if_updated_at, position)
  left join unnest(v_existing_ids, v_existing_times) as existing (id, updated_at) on existing.id = requested.id;
  report := '"count":' || cardinality(chosen)
    || ',"missing":' || array_to_json(v_missing)
    || case when p_if_updated_at is null then '' else ',"conflicts":' || array_to_json(v_conflicts) end;
end
$$;
