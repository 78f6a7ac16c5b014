import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { openRunFolder } from '../chaos/run-folder.ts';
import { startPostgres } from '../support/postgres.ts';
import { ProjectCopy, SHORT_LIMITS } from './copy.ts';
import { MUTANTS, type Mutant } from './list.ts';

/**
 * Applies each mutation of the list to a copy of the working tree, and runs the test that must catch the mutation.
 * Fails if a test passes in spite of its mutation, if a test fails without its mutation, or if a mutation no longer
 * applies. `--part 3/10` tries every tenth mutation, starting with the third. If file names are given, only the
 * mutations of these files are tried.
 */

const { values, positionals } = parseArgs({
  options: { part: { type: 'string', default: '1/1' } },
  allowPositionals: true,
});
const [part = 0, parts = 0] = values.part.split('/').map(Number);
if (!(Number.isInteger(part) && Number.isInteger(parts) && part >= 1 && part <= parts))
  throw new Error('--part is like 3/10');

const chosen = MUTANTS.filter(({ file }) => positionals.length === 0 || positionals.includes(file)).filter(
  (_, index) => index % parts === part - 1,
);
if (chosen.length === 0) throw new Error('no mutation was chosen');
const faults: string[] = [];

/**
 * Runs the tests without mutations. Returns the mutations whose test passes. For the others, a failure would not show
 * that the mutation was found.
 */
async function listTestable(copy: ProjectCopy): Promise<Mutant[]> {
  const names = [...new Set(chosen.map(({ caughtBy }) => caughtBy))];
  const outcomes = await copy.runTests(names);
  for (const name of names) {
    const { status, message } = outcomes.get(name)!;
    if (status !== 'passed') faults.push(`without any mutation, the test ${status}: ${name}\n${message}`);
  }
  return chosen.filter(({ caughtBy }) => outcomes.get(caughtBy)!.status === 'passed');
}

async function tryMutant(copy: ProjectCopy, { file, from, to, caughtBy }: Mutant): Promise<void> {
  const name = `${file}: ${from.trim()} => ${to.trim()}`;
  const restore = copy.replaceOnce(file, from, to);
  if (restore === undefined) {
    faults.push(`does not apply exactly once: ${name}`);
    return;
  }
  const { status, message } = (await copy.runTests([caughtBy], SHORT_LIMITS)).get(caughtBy)!;
  restore();
  if (status === 'failed') console.log(`caught: ${name}`);
  else if (status === 'passed') faults.push(`survived: ${name}`);
  else faults.push(`the test ${status}: ${name}\n${message}`);
}

const begunAt = performance.now();
{
  using _folder = openRunFolder();
  // All copies share this server. Each run of a test creates its own databases.
  await using postgres = await startPostgres();
  const copies = Array.from({ length: availableParallelism() }, () => new ProjectCopy(postgres.url));
  const queue = await listTestable(copies[0]!);
  const work = async (copy: ProjectCopy) => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await tryMutant(copy, next);
  };
  await Promise.all(copies.map(work));
}
const seconds = Math.round((performance.now() - begunAt) / 1_000);
console.log(`${chosen.length} mutations, ${faults.length} not caught, in ${seconds} s`);
for (const fault of faults) console.error(fault);
process.exitCode = faults.length === 0 ? 0 : 1;
