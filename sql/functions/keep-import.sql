-- Writes the answer of an import beside what it did: into the row of a staged one, into a row of its own for a small
-- one. Where a cancellation took that place, the duplicate key undoes everything.
create or replace function keep_import(p_user_id bigint, p_import_id uuid, p_is_staged boolean, p_result text) returns void
language plpgsql as $$
begin
  if p_is_staged then
    update imports set state = 'done', result = p_result, touched_at = now(), lease_id = null, lease_until = null
    where user_id = p_user_id and id = p_import_id;
    delete from import_chunks where user_id = p_user_id and import_id = p_import_id;
  else
    insert into imports (user_id, id, state, bytes, result) values (p_user_id, p_import_id, 'done', 0, p_result);
  end if;
end
$$;
