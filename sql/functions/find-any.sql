-- Returns the ids, in no order, of the bookmarks that match at least one of the alternatives and whose search text
-- matches none of the `like` patterns in `p_without`. find-texts.sql describes `terms`, `patterns` and `bits` of an
-- alternative. A bookmark must also have all of its `tag_ids`.
create or replace function find_any(p_user_id bigint, p_alternatives jsonb, p_without text[]) returns bigint[]
-- Postgres plans each statement for the values of the call. It then drops conditions whose value is null.
language plpgsql stable set plan_cache_mode = force_custom_plan as $$
declare
  v_alternative record;
  v_matches bigint[];
  v_matches_of_any bigint[] := '{}';
begin
  for v_alternative in
    select *
    from jsonb_to_recordset(p_alternatives)
      as alternative(terms text[], patterns text[], bits integer[], tag_ids bigint[])
  loop
    if v_alternative.tag_ids = '{}' then
      v_matches := find_texts(
        p_user_id, v_alternative.terms, v_alternative.patterns, v_alternative.bits, p_without
      );
    else
      v_matches := find_tagged(
        p_user_id, v_alternative.tag_ids, v_alternative.terms, v_alternative.patterns, p_without
      );
    end if;
    v_matches_of_any := array(select unnest(v_matches_of_any) union select unnest(v_matches));
  end loop;
  return v_matches_of_any;
end
$$;
