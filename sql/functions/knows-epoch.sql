-- Returns whether any node has this epoch. After rows were moved to this node, cursors may still hold the epoch of the
-- node that had them before. Volatile, so that it sees an epoch that the calling statement began.
create or replace function knows_epoch(p_epoch bigint) returns boolean
language plpgsql volatile as $$
begin
  return exists (select from epoch where number = p_epoch);
end
$$;
