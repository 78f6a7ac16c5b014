-- Records that bookmarks or tags were changed or deleted. Each bookmark or tag gets a new revision of the account, in
-- the given order. The caller must hold the lock on the account's row.
create or replace function note_changes(p_user_id bigint, p_kind text, p_object_ids bigint[]) returns void
language plpgsql as $$
declare
  v_min_revision bigint := min_id_now();
  v_last_revision bigint;
begin
  if cardinality(p_object_ids) = 0 then
    return;
  end if;
  update accounts set last_change = greatest(last_change, v_min_revision) + cardinality(p_object_ids)
  where user_id = p_user_id
  returning last_change into v_last_revision;
  insert into changes (user_id, kind, object_id, number)
  select p_user_id, p_kind, changed.id, v_last_revision - cardinality(p_object_ids) + changed.place
  from unnest(p_object_ids) with ordinality as changed (id, place)
  on conflict (user_id, kind, object_id) do update
  set number = excluded.number, changed_at = excluded.changed_at;
end
$$;
