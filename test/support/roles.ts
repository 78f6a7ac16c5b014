/** The lines at the top of `k8s/database/roles.sql` for the administrator, in order, each with `…` for a password. */
export function readAdministratorLines(rolesSql: string): string[] {
  const lines = [...rolesSql.matchAll(/^-- {3}((?:create|grant) .*;)$/gm)].map(([, line]) => line!);
  if (lines.length !== 7) throw new Error(`expected seven lines for the administrator, got ${lines.length}`);
  return lines;
}
