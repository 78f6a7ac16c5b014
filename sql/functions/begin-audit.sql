-- Records in `audit` that an operator's command begins. Returns the id of the new row.
create or replace function begin_audit(p_operator text, p_action text, p_object text, out id bigint)
language plpgsql as $$
begin
  insert into audit as a (id, operator, action, object)
  values (next_id('audit_id_seq'), p_operator, p_action, p_object)
  returning a.id into id;
end
$$;
