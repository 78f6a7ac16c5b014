import { post } from '../../support/post.ts';
import { require, type Stage } from '../stage.ts';

/** Runs the commands of the section *Users and tokens* (docs/operation.md) in a pod, one after another. */

const EMAIL = 'ann@example.org';

export async function useOperatorCommands({ operator, cluster }: Stage): Promise<void> {
  const { code } = await operator.admin('admin invite create --email ann@example.org');
  const { origin } = cluster.gateway;
  const invited = await post(origin, '/auth/invite', { code });
  require(invited.status === 200, `an invite that lets somebody in, got ${invited.text}`);
  const { id } = await operator.admin('admin user show --id 2', { '--id 2': `--email ${EMAIL}` });
  require(id, 'the user whom the invite made');
  await operator.admin('admin user create --email ann@example.org', { [EMAIL]: 'bob@example.org' });
  await operator.admin('admin user set --email ann@example.org --premium true');
  await operator.admin('admin user set --email ann@example.org --premium false');
  const { token } = await operator.admin('admin token create --email ann@example.org --scope read');
  const list = (await operator.admin('admin token list --email ann@example.org')) as unknown as {
    tokens: { id: string }[];
  };
  await operator.admin('admin user list');
  await operator.admin('admin token revoke --id 2-17', { '2-17': list.tokens.at(-1)!.id });
  const refused = await post(origin, '/bookmarks/list', {}, { token: token! });
  require(refused.status === 401, `a revoked token that is refused, got ${refused.status}`);
  await operator.admin('admin epoch renew');
  await operator.admin('admin user delete --email ann@example.org');
}
