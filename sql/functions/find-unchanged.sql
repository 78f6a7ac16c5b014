-- Finds readers of changes for whom there is nothing new. The arrays describe the readers: at each index a user, a
-- token and the position that the reader has reached. A reader is found if the token is valid and the account has no
-- changes after the position. Returns the indexes of these readers, counted from 0. One statement serves users of all
-- shards, because it joins the tables with the arrays.
create or replace function find_unchanged(
  p_user_ids bigint[], p_token_hashes text[], p_epochs bigint[], p_generations bigint[],
  p_changes bigint[], p_bookmark_ids bigint[], p_tag_ids bigint[]
) returns integer[]
-- The function is volatile, so that the second statement sees an epoch that `current_epoch` has just begun.
language plpgsql volatile as $$
declare
  v_epochs bigint[];
begin
  perform current_epoch();
  v_epochs := array(select number from epoch);
  return array(
    select (reader.position - 1)::integer
    from unnest(p_user_ids, p_token_hashes, p_epochs, p_generations, p_changes, p_bookmark_ids, p_tag_ids)
      with ordinality reader (user_id, token_hash, epoch, generation, change, bookmark_id, tag_id, position)
    join tokens t on t.user_id = reader.user_id and t.token_hash = decode(reader.token_hash, 'hex')
      and t.expires_at > now()
    join accounts a on a.user_id = t.user_id and a.generation = reader.generation and a.last_change = reader.change
    where reader.epoch = any (v_epochs)
      and not exists (select from bookmarks b where b.user_id = t.user_id and b.id > reader.bookmark_id)
      and not exists (select from tags g where g.user_id = t.user_id and g.id > reader.tag_id)
  );
end
$$;
