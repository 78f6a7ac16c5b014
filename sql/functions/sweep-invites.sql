-- Deletes at most `p_limit` expired invites, and returns their number. Skips locked rows, which the next sweep deletes.
create or replace function sweep_invites(p_limit integer) returns bigint
language plpgsql as $$
declare
  v_codes text[];
  v_deleted bigint;
begin
  v_codes := array(
    select code from invites where expires_at < now() order by expires_at limit p_limit for update skip locked
  );
  if cardinality(v_codes) = 0 then
    return 0;
  end if;
  delete from invites where code = any (v_codes);
  get diagnostics v_deleted = row_count;
  return v_deleted;
end
$$;
