-- What a restored database holds: read by a person who compares it with what was expected. k8s/restore.sh runs it.
select (select max(version) from schema_migrations) as schema,
  (select count(*) from users) as users,
  (select count(*) from tokens) as tokens,
  (select count(*) from bookmarks) as bookmarks,
  (select max(updated_at) from bookmarks) as newest_change,
  -- Tables whose constraints were not checked, and indexes that are not valid: none.
  (select count(*) from pg_constraint where not convalidated) as unchecked_constraints,
  (select count(*) from pg_index where not indisvalid) as invalid_indexes;
