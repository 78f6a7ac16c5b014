-- Records an id in `accounts.id_floor` if it is ahead of time, which means more than 200,000 above `min_id_now()`. If
-- the user's rows then move to a node with lower sequences, later ids are still higher. Other ids need no mark, because
-- within a tenth of a second every node gives higher ids. Requires the account's lock.
create or replace function raise_high_water_mark(p_user_id bigint, p_id bigint) returns void
language plpgsql as $$
begin
  if p_id > min_id_now() + 200000 then
    update accounts set id_floor = greatest(id_floor, p_id) where user_id = p_user_id;
  end if;
end
$$;
