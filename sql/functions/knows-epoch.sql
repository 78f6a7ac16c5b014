-- Returns whether any node has this epoch. A cursor may hold the epoch of another node, if the user's rows were moved
-- from that node to this one. The function is volatile, so that it sees an epoch that the calling statement began.
create or replace function knows_epoch(p_epoch bigint) returns boolean
language plpgsql volatile as $$
begin
  return exists (select from epoch where number = p_epoch);
end
$$;
