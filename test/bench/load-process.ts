import { once } from 'node:events';
import { formatRequest, HttpConnection, type HttpResponse } from './harness/http-connection.ts';
import type { LoadJob, LoadReport } from './harness/load.ts';
import { latencyOf, Samples } from './harness/stats.ts';

/** The program of the load generator, a process that runs one job and exits. */

/** The maximum number of different requests. More would not change the result, and would take memory. */
const MAX_DISTINCT = 20_000;

/** If the server is too slow for an open loop, requests are sent for up to this many times the planned duration. */
const MOST_LATE = 3;

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

  // Returns the time at which the next request is due, or undefined after the end. In a closed loop, a request is due
  // as soon as a connection is free.
  const takeDue = (now: number): number | undefined => {
    const due = job.perSecond === undefined ? now : startedAt + (state.next * 1_000) / job.perSecond;
    if (due >= endAt) return undefined;
    state.next += 1;
    return due;
  };
  const giveUpAt = startedAt + job.seconds * 1_000 * MOST_LATE;

  const loop = () =>
    new Promise<void>((resolve, reject) => {
      const connection = new HttpConnection(job.port, reject);
      let due: number | undefined;
      const send = () => {
        const now = performance.now();
        due = takeDue(now);
        // If the server is far too slow, nothing more is sent. The latency of an unsent request is its wait until now.
        for (; due !== undefined && now > giveUpAt; due = takeDue(now)) latencies.push(now - due);
        if (due === undefined) {
          connection.close();
          return resolve();
        }
        const request = requests[(state.next - 1) % requests.length]!;
        const go = () => connection.send(request, receive);
        if (due > now) setTimeout(go, due - now);
        else go();
      };
      const receive = (response: HttpResponse) => {
        latencies.push(performance.now() - due!);
        state.bytes += response.bytes;
        if (response.status !== job.expectStatus) {
          state.failures += 1;
          state.failure ??= `${response.status} ${response.body.toString().slice(0, 300)}`;
        }
        send();
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
