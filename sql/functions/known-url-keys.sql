-- Which of these keys of urls the user's bookmarks have, each once. Planned for the array at hand, so that its keys are
-- hashed where Postgres goes through the user's bookmarks instead of looking each of them up.
create or replace function known_url_keys(p_user_id bigint, p_url_keys uuid[]) returns uuid[]
language plpgsql stable set plan_cache_mode = force_custom_plan as $$
begin
  return array(select distinct url_key from bookmarks where user_id = p_user_id and url_key = any (p_url_keys));
end
$$;
