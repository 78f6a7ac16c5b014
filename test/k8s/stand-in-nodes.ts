import { runOn } from '../support/run-on.ts';

/**
 * Imitates, on plain servers, the parts of Citus that `k8s/rotate.sh` uses: the coordinator's list of nodes, the two
 * functions that connect to nodes, and the table `pg_dist_authinfo`. That table holds the passwords with which nodes
 * connect to each other. The tests in test/citus/ use real nodes.
 */

const ON_EACH = (group: number) => `
  set allow_system_table_mods = on;
  create table pg_catalog.pg_dist_local_group as
  select ${group} as groupid;
  create table pg_catalog.pg_dist_authinfo (nodeid int, rolename name, authinfo text, unique (rolename, nodeid));
  create table pg_catalog.pg_dist_node (
    nodeid int, groupid int, nodename text, nodeport int,
    noderole text default 'primary', isactive boolean default true
  );
  grant select on pg_catalog.pg_dist_node, pg_catalog.pg_dist_local_group to public;
`;

const ON_COORDINATOR = `
  create extension dblink;
  create function pg_catalog.run_command_on_all_nodes(command text, out nodeid int, out success boolean, out result text)
  returns setof record
  language plpgsql
  as $$
  declare
    node record;
  begin
    for node in select n.* from pg_catalog.pg_dist_node as n where n.isactive order by n.nodeid loop
      nodeid := node.nodeid;
      begin
        select r.text into result
        from public.dblink(
          format('host=%s port=%s dbname=bookmarks user=%s', node.nodename, node.nodeport, current_user), command
        ) as r (text text);
        success := true;
      exception when others then
        success := false;
        result := 'ERROR: ' || sqlerrm;
      end;
      return next;
    end loop;
  end
  $$;
  create function pg_catalog.reaches(node pg_catalog.pg_dist_node, role name)
  returns boolean
  language plpgsql
  security definer
  as $$
  begin
    perform
    from public.dblink(
      format(
        'host=%s port=%s dbname=bookmarks user=%s %s', node.nodename, node.nodeport, role,
        (select authinfo from pg_catalog.pg_dist_authinfo where rolename = role)
      ),
      'select 1'
    ) as r (reached int);
    return true;
  exception when others then
    return false;
  end
  $$;
  create function pg_catalog.citus_check_cluster_node_health(
    out from_nodename text, out from_nodeport int, out to_nodename text, out to_nodeport int, out result boolean
  )
  returns setof record
  language sql
  as $$
    select here.nodename, here.nodeport, node.nodename, node.nodeport, pg_catalog.reaches(node, current_user)
    from pg_catalog.pg_dist_node as node
    cross join pg_catalog.pg_dist_node as here
    where here.groupid = 0 and node.isactive
  $$;
`;

/** Turns servers into the nodes of a cluster. The first one is the coordinator. */
export async function makeNodes(urls: readonly string[]): Promise<void> {
  for (const [group, url] of urls.entries()) await runOn(url, ON_EACH(group));
  await runOn(urls[0]!, `set allow_system_table_mods = on; ${ON_COORDINATOR}`);
}

/** Restores the list of nodes, and keeps only the password of `bookmarks_a`. */
export async function resetNodes(urls: readonly string[]): Promise<void> {
  const rows = urls.map((url, group) => `(${group + 1}, ${group}, '127.0.0.1', ${new URL(url).port})`);
  for (const url of urls)
    await runOn(
      url,
      `truncate pg_catalog.pg_dist_authinfo;
      insert into pg_catalog.pg_dist_authinfo
      values (0, 'bookmarks_a', 'password=first')`,
    );
  await runOn(
    urls[0]!,
    `truncate pg_catalog.pg_dist_node;
    insert into pg_catalog.pg_dist_node (nodeid, groupid, nodename, nodeport)
    values ${rows.join(', ')}`,
  );
}
