import { Command, Option } from 'commander';
import { openRunFolder } from '../chaos/run-folder.ts';
import { rehearse } from './rehearse.ts';

/**
 * `npm run test:rehearsal` installs, upgrades, rolls back, backs up and restores the service, and rotates its secrets.
 * It uses the commands of docs/operation.md and the scripts in `k8s/`. The pods are local processes with the values
 * from the manifests. Clients send requests all the time.
 */

const share = (text: string): number => {
  const value = Number(text);
  if (!(value > 0 && value <= 1)) throw new Error(`expected a share above 0, at most 1, got ${text}`);
  return value;
};

async function run({ scale }: { scale: number }): Promise<void> {
  using _folder = openRunFolder();
  const begunAt = performance.now();
  const note = (line: string) =>
    console.log(`${Math.round((performance.now() - begunAt) / 1_000)} s: ${line}`);
  await rehearse(scale, note);
  note('the rehearsal went as the document says');
}

await new Command('test:rehearsal')
  .addOption(new Option('--scale <share>', 'how much of the manifests’ waits').argParser(share).default(0.1))
  .action(run)
  .parseAsync();
