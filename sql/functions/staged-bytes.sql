-- Returns the number of bytes that all imports have staged on this node. The function reads only this node's shards,
-- because the limit on staged bytes protects this node's disk. So imports on this node continue while another node is
-- down.
create or replace function staged_bytes() returns bigint
language sql as $$
  select coalesce(sum((staged ->> 'bytes')::bigint), 0)::bigint
  from rows_of_node('imports', $q$select sum(bytes) as bytes from %s where is_staged and state in ('receiving', 'queued')$q$) staged
$$;
