-- A column of an import by its name: a text for each entry, null where it is empty. Null where the column was not sent.
create or replace function import_column(p_names text[], p_columns text[], p_separator text, p_name text) returns text[]
language sql immutable as $$
  select string_to_array(p_columns[array_position(p_names, p_name)], p_separator, '')
$$;
