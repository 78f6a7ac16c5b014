-- Tags of a user that were deleted and still stand in bookmarks that wait to be rewritten: nobody may see or count them.
create or replace function gone_tags(p_user_id bigint) returns bigint[]
language plpgsql stable as $$
begin
  return array(
    select stale.id
    from accounts a
    cross join unnest(a.stale_tags) as stale (id)
    where a.user_id = p_user_id and not exists (select from tags t where t.user_id = p_user_id and t.id = stale.id)
  );
end
$$;
