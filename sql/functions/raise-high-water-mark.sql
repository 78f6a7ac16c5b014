-- Records in `accounts.id_floor` that a user got an id ahead of time (see `min_id_now`). If the rows move to another
-- node with lower sequences, later ids are still higher. Other ids need no mark: within a tenth of a second every node
-- returns higher ones. Requires the account's lock.
create or replace function raise_high_water_mark(p_user_id bigint, p_id bigint) returns void
language plpgsql as $$
begin
  if p_id > min_id_now() + 200000 then
    update accounts set id_floor = greatest(id_floor, p_id) where user_id = p_user_id;
  end if;
end
$$;
