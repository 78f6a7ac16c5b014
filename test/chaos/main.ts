import { Command, Option } from 'commander';
import { provide } from '../support/programs.ts';
import { isSound } from './checks/findings.ts';
import { REDIS_KINDS, type RedisKind } from './redis-nodes.ts';
import { formatFaults, formatFindings, formatTable, formatWarnings } from './report.ts';
import { DEFAULTS, runChaos } from './run.ts';
import { openRunFolder } from './run-folder.ts';

/**
 * `npm run test:chaos` shows that the service loses and duplicates nothing, and that its clients miss nothing, even
 * when its servers and connections fail.
 */

interface Options {
  seed: number;
  seconds: number;
  minutes?: number;
  redis: RedisKind;
  citus?: string;
  pauseMs: number;
}

const wholeNumber = (text: string): number => {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`expected a whole number, got ${text}`);
  return Number(text);
};

async function run({ seed, seconds, minutes, redis, citus, pauseMs }: Options): Promise<void> {
  for (const program of ['redis', 'haproxy'] as const) await provide(program);
  using _folder = openRunFolder();
  const begunAt = performance.now();
  const log = (line: string) =>
    console.error(`${Math.round((performance.now() - begunAt) / 1_000)} s: ${line}`);
  const lasting = minutes === undefined ? seconds : minutes * 60;
  console.log(`seed ${seed}, ${lasting} s, redis ${redis}${citus ? ', Citus' : ''}`);
  const { results, evidence } = await runChaos({
    ...{ ...DEFAULTS, seed, seconds: lasting, redis, pauseMs, log },
    citusUrl: citus,
  });
  console.log(`\n${formatTable(results)}\n\nfaults: ${formatFaults(evidence.journal.faults)}`);
  console.log(`\nwarnings:\n${formatWarnings(evidence.journal.lives)}`);
  if (isSound(results)) return;
  console.log(
    `\n${formatFindings(results)}\n\nrepeat by: npm run test:chaos -- --seed ${seed} --seconds ${lasting} --redis ${redis}${citus ? ` --citus ${citus}` : ''}`,
  );
  process.exitCode = 1;
}

await new Command('test:chaos')
  .addOption(new Option('--seed <n>', 'what happens, and when').argParser(wholeNumber).default(1))
  .addOption(new Option('--seconds <n>', 'how long').argParser(wholeNumber).default(60))
  .addOption(new Option('--minutes <n>', 'how long, instead').argParser(wholeNumber))
  .addOption(new Option('--redis <kind>', 'alone, or several').choices(REDIS_KINDS).default('single'))
  .addOption(
    new Option('--citus <url>', 'the coordinator of a cluster whose nodes may be crashed').env(
      'TEST_CITUS_URL',
    ),
  )
  .addOption(
    new Option('--pause-ms <n>', 'mean pause between the calls of a writer')
      .argParser(wholeNumber)
      .default(DEFAULTS.pauseMs),
  )
  .action(run)
  .parseAsync();
