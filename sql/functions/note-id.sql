-- Notes an id that a user was given ahead of time, see `time_floor`: rows that are moved to another node, whose sequences are
-- behind, then still get higher ids. Ids that are not ahead lie below whatever any node gives a tenth of a second later. Under
-- the account's lock only.
create or replace function note_id(p_user_id bigint, p_id bigint) returns void
language plpgsql as $$
begin
  if p_id > time_floor() + 200000 then
    update accounts set id_floor = greatest(id_floor, p_id) where user_id = p_user_id;
  end if;
end
$$;
