// Asks the package registry for known vulnerabilities of the production dependencies. Fails if the severity of any of
// them is high or critical. Exits with 75 (not done) if the registry cannot be reached or does not offer advisories.
// Runs on the Node that is installed on the machine.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const GRAVE = ['high', 'critical'];
const NOT_DONE = 75;

/** Parses npm's output. Returns undefined if it is not JSON. */
function readReport(output) {
  try {
    return JSON.parse(output);
  } catch {
    return undefined;
  }
}

function describe({ name, severity, range, via }) {
  const titles = via.map((cause) =>
    typeof cause === 'string' ? `by ${cause}` : `${cause.title} (${cause.url})`,
  );
  return `${severity}: ${name} ${range}: ${titles.join('; ')}`;
}

/**
 * Returns the exit code: 0 if there is no high or critical vulnerability, 1 if there is one or npm failed, 75 if the
 * registry gave no valid answer.
 */
function judge(report, errors) {
  if (report?.metadata?.vulnerabilities) {
    const grave = Object.values(report.vulnerabilities).filter(({ severity }) => GRAVE.includes(severity));
    for (const vulnerability of grave) console.log(describe(vulnerability));
    const { total } = report.metadata.vulnerabilities;
    console.log(
      `audit: ${total} known vulnerabilities in production dependencies, ${grave.length} high or critical`,
    );
    return grave.length === 0 ? 0 : 1;
  }
  // If the registry gave no valid answer, npm's report has a `message` at the top level. After other failures it has
  // none.
  if (typeof report?.message === 'string') {
    console.log(`audit: not done, the registry gave no advisories: ${report.message}`);
    if (process.env.SKIP_REASON) writeFileSync(process.env.SKIP_REASON, `no advisories: ${report.message}`);
    return NOT_DONE;
  }
  console.log(`audit: npm audit failed\n${errors}`);
  return 1;
}

const patience = ['--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--fetch-timeout=20000'];
const npm = spawnSync('npm', ['audit', '--omit=dev', '--json', ...patience], { encoding: 'utf8' });
process.exitCode = judge(readReport(npm.stdout), npm.error?.message ?? npm.stderr);
