-- Returns the alternatives of a search that a bookmark can match, as a JSON array, and adds the ids of their tags as
-- `tag_ids`. Nothing matches an alternative with a tag that does not exist.
create or replace function possible_alternatives(p_user_id bigint, p_any jsonb) returns jsonb
language plpgsql stable as $$
declare
  v_alternative jsonb;
  v_keys text[];
  v_tag_ids bigint[];
  v_possible jsonb := '[]';
begin
  for v_alternative in select jsonb_array_elements(p_any) loop
    v_keys := array(select jsonb_array_elements_text(v_alternative -> 'tags'));
    v_tag_ids := array(select id from tags where user_id = p_user_id and name_key = any (v_keys));
    if cardinality(v_tag_ids) = cardinality(v_keys) then
      v_possible := v_possible || (v_alternative || jsonb_build_object('tag_ids', v_tag_ids));
    end if;
  end loop;
  return v_possible;
end
$$;
