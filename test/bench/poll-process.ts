import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatRequest, HttpConnection } from './harness/http-connection.ts';
import type { Poller, WakeReport } from './harness/polls.ts';
import { latencyOf, Samples } from './harness/stats.ts';

/** This program runs clients that poll. It takes orders from the parent process and answers each order. */

/** If many clients connect at the same time, some connections may be reset before the server accepts them. */
const RETRIES = 20;

const fail = (error: Error) => {
  console.error(error);
  process.exit(1);
};

class Client {
  readonly poller: Poller;
  /** Called when a poll returned something new. */
  onNews = () => {};
  readonly #connection: HttpConnection;
  #cursor: number;

  constructor(poller: Poller) {
    this.poller = poller;
    this.#cursor = poller.body.cursor;
    this.#connection = new HttpConnection(poller.port, fail, RETRIES);
  }

  poll(): void {
    const { path, body, token } = this.poller;
    const request = formatRequest(path, JSON.stringify({ ...body, cursor: this.#cursor }), token);
    this.#connection.send(request, (response) => {
      // With this status, the server asks clients to retry later.
      if (response.status === 503) return void setTimeout(() => this.poll(), 1_000);
      if (response.status !== 200)
        fail(new Error(`a poll was answered ${response.status}: ${response.body}`));
      const text = response.body.toString();
      const cursor = Number(/"cursor":(\d+)/.exec(text)?.[1]);
      const isNews = cursor > this.#cursor;
      this.#cursor = cursor;
      if (isNews) this.onNews();
      this.poll();
    });
  }
}

const clients: Client[] = [];

/**
 * The connections for triggers, by port. A trigger is the request that wakes a poll. `free` resolves when the
 * connection can take the next trigger.
 */
const triggers = new Map<
  number,
  { lanes: { connection: HttpConnection; free: Promise<void> }[]; next: number }
>();

async function hold(pollers: readonly Poller[]): Promise<void> {
  for (const [index, poller] of pollers.entries()) {
    const client = new Client(poller);
    clients.push(client);
    client.poll();
    if (index % 100 === 99) await sleep(20);
  }
  await sleep(Math.min(2_000, 300 + pollers.length));
}

/** Sends a trigger on one of a few connections. A connection has only one request at a time. */
function trigger({ wake }: Poller): Promise<void> {
  const target = triggers.get(wake.port) ?? {
    lanes: Array.from({ length: 32 }, () => ({
      connection: new HttpConnection(wake.port, fail),
      free: Promise.resolve(),
    })),
    next: 0,
  };
  triggers.set(wake.port, target);
  const lane = target.lanes[target.next++ % target.lanes.length]!;
  lane.free = lane.free.then(() => sendTrigger(lane.connection, wake));
  return lane.free;
}

const sendTrigger = (connection: HttpConnection, { path, body, token }: Poller['wake']) =>
  new Promise<void>((resolve) => {
    connection.send(formatRequest(path, JSON.stringify(body), token), (response) => {
      if (response.status !== 200)
        fail(new Error(`a trigger was answered ${response.status}: ${response.body}`));
      resolve();
    });
  });

async function wake(count: number, perSecond: number): Promise<WakeReport> {
  const latencies = new Samples();
  const startedAt = performance.now();
  await (perSecond === 0 ? wakeTogether(latencies) : wakeInTurn(latencies, count, perSecond));
  return {
    wakes: latencies.length,
    latency: latencyOf(latencies.take()),
    seconds: (performance.now() - startedAt) / 1_000,
  };
}

async function wakeInTurn(latencies: Samples, count: number, perSecond: number): Promise<void> {
  const startedAt = performance.now();
  const pending: Promise<void>[] = [];
  for (let n = 0; n < count; n += 1) {
    const dueAt = startedAt + (n * 1_000) / perSecond;
    if (dueAt > performance.now()) await sleep(dueAt - performance.now());
    // The factor spreads the triggers over all clients, so that two triggers in flight never wake the same client.
    const client = clients[(n * 7_919) % clients.length]!;
    // The latency counts from the time when the trigger was due, because a trigger that waits for a connection waits
    // for the server.
    const news = new Promise<void>((resolve) => {
      client.onNews = () => {
        latencies.push(performance.now() - dueAt);
        client.onNews = () => {};
        resolve();
      };
    });
    pending.push(news, trigger(client.poller));
  }
  await Promise.all(pending);
}

async function wakeTogether(latencies: Samples): Promise<void> {
  const sentAt = performance.now();
  const news = clients.map(
    (client) =>
      new Promise<void>((resolve) => {
        client.onNews = () => {
          latencies.push(performance.now() - sentAt);
          client.onNews = () => {};
          resolve();
        };
      }),
  );
  await trigger(clients[0]!.poller);
  await Promise.all(news);
}

for (;;) {
  const [order] = await once(process, 'message');
  process.send!(
    order.kind === 'hold' ? ((await hold(order.pollers)) ?? null) : await wake(order.count, order.perSecond),
  );
}
