import { once } from 'node:events';
import { formatRequest, HttpConnection, type HttpResponse } from './harness/http-connection.ts';
import type { LoadJob, LoadReport } from './harness/load.ts';
import { latencyOf, Samples } from './harness/stats.ts';

/** The load generator: a process that takes one job, runs it and ends. */

/** More distinct requests than this add nothing and take memory. */
const MAX_DISTINCT = 20_000;

function formatRequests({ path, bodies, tokens, requests }: LoadJob): Buffer[] {
  if (requests !== undefined) return requests.map((each) => formatRequest(each.path, each.body, each.token));
  const count = Math.min(MAX_DISTINCT, bodies.length * Math.max(1, tokens.length));
  return Array.from({ length: count }, (_, n) =>
    formatRequest(path, bodies[n % bodies.length]!, tokens[n % tokens.length]),
  );
}

async function runJob(job: LoadJob): Promise<LoadReport> {
  const requests = formatRequests(job);
  const latencies = new Samples();
  const state = { bytes: 0, failures: 0, failure: undefined as string | undefined, next: 0 };
  const startedAt = performance.now();
  const endAt = startedAt + job.seconds * 1_000;
  const before = process.cpuUsage();

  const loop = () =>
    new Promise<void>((resolve, reject) => {
      const connection = new HttpConnection(job.port, reject);
      let sentAt = 0;
      const send = () => {
        sentAt = performance.now();
        connection.send(requests[state.next++ % requests.length]!, receive);
      };
      const receive = (response: HttpResponse) => {
        const now = performance.now();
        latencies.push(now - sentAt);
        state.bytes += response.bytes;
        if (response.status !== job.expectStatus) {
          state.failures += 1;
          state.failure ??= `${response.status} ${response.body.toString().slice(0, 300)}`;
        }
        if (now < endAt) return send();
        connection.close();
        resolve();
      };
      send();
    });
  await Promise.all(Array.from({ length: job.connections }, loop));

  const { user, system } = process.cpuUsage(before);
  return {
    requests: latencies.length,
    failures: state.failures,
    failure: state.failure,
    seconds: (performance.now() - startedAt) / 1_000,
    latency: latencyOf(latencies.take()),
    bytes: state.bytes,
    cpuMs: (user + system) / 1_000,
  };
}

const [job] = (await once(process, 'message')) as [LoadJob];
process.send!(await runJob(job));
process.disconnect?.();
