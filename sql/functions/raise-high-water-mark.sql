-- Records an id in `accounts.id_floor` if it is more than `ids_per_tick` above `min_id_now()`. `next_id` returns only ids
-- above `id_floor`. So the user's next ids are higher even if the user's rows move to another node, whose sequences may
-- be behind. Lower ids are not recorded, because a tenth of a second later every node gives higher ids. The caller must
-- hold the lock on the account's row.
create or replace function raise_high_water_mark(p_user_id bigint, p_id bigint) returns void
language plpgsql as $$
begin
  if p_id > min_id_now() + limit_of('ids_per_tick') then
    update accounts set id_floor = greatest(id_floor, p_id) where user_id = p_user_id;
  end if;
end
$$;
