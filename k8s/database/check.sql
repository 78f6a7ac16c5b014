-- Shows what a restored database contains, so that a person can compare it with what they expect. k8s/restore.sh runs
-- this query.
select (select max(version) from schema_migrations) as schema,
  (select count(*) from users) as users,
  (select count(*) from tokens) as tokens,
  (select count(*) from bookmarks) as bookmarks,
  (select max(updated_at) from bookmarks) as newest_change,
  -- The last two counts must be 0.
  (select count(*) from pg_constraint where not convalidated) as unchecked_constraints,
  (select count(*) from pg_index where not indisvalid) as invalid_indexes;
