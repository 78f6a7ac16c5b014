-- Returns the ids of the tag with this normalized name and of all tags below it. For example, `a/b` is below `a`.
create or replace function tag_ids_under(p_user_id bigint, p_key text) returns bigint[]
language plpgsql stable as $$
begin
  return array(
    select id from tags where user_id = p_user_id and name_key = p_key
    union all
    -- `0` is the character after `/`, so this selects every name that begins with the key and a slash.
    select id from tags where user_id = p_user_id and name_key >= p_key || '/' and name_key < p_key || '0'
  );
end
$$;
