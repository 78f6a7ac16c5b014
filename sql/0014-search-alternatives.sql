-- works-with: 12
-- Drops a function whose arguments have changed, so that a search can exclude texts.

drop function if exists find_texts(bigint, text[], text[], integer[]);
