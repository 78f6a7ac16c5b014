-- Returns whether a search text contains all terms and matches none of the `like` patterns in `p_without`. `p_terms`
-- holds up to three terms. They are tested by `strpos`, which is the fastest test. If there are more terms, `p_patterns`
-- holds the others as `like` patterns.
create or replace function matches_text(p_text text, p_terms text[], p_patterns text[], p_without text[])
  returns boolean
-- Postgres puts this expression in place of each call.
language sql immutable as $$
  select (p_terms[1] is null or strpos(p_text, p_terms[1]) > 0)
    and (p_terms[2] is null or strpos(p_text, p_terms[2]) > 0)
    and (p_terms[3] is null or strpos(p_text, p_terms[3]) > 0)
    and (p_patterns is null or p_text like all (p_patterns))
    and (p_without is null or not p_text like any (p_without))
$$;
