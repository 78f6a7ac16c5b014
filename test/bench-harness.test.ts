import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import type { Bench, Plan } from './bench/harness/bench.ts';
import { formatRequest, HttpConnection, type HttpResponse } from './bench/harness/http-connection.ts';
import { describeDeath } from './bench/harness/replica.ts';
import type { Line } from './bench/harness/report.ts';
import { runBenches } from './bench/harness/run-benches.ts';

test("each benchmark's result is printed when it ends, and a failing benchmark does not stop the others", async () => {
  const errors = vi.spyOn(console, 'error').mockImplementation(() => {});
  const line = (bench: string) => ({ bench }) as Line;
  const seen: string[] = [];
  const benches: Bench[] = [
    { name: 'first', run: async () => [line('first')] },
    { name: 'broken', run: () => Promise.reject(new Error('ECONNRESET')) },
    { name: 'last', run: async () => [line(`last, after ${seen.length}`)] },
  ];
  const failed = await runBenches(benches, {} as Plan, (lines) =>
    seen.push(...lines.map(({ bench }) => bench)),
  );
  expect({ failed, seen }).toEqual({ failed: ['broken'], seen: ['first', 'last, after 1'] });
  expect(errors).toHaveBeenCalledWith('broken FAILED:', expect.objectContaining({ message: 'ECONNRESET' }));
  errors.mockRestore();
});

test('a polling client reconnects after a reset before its first response, and reports a later reset', async () => {
  const accepted: Socket[] = [];
  const server = createServer((socket) => {
    accepted.push(socket);
    if (accepted.length <= 2) return void socket.resetAndDestroy();
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const failure = Promise.withResolvers<Error>();
  const connection = new HttpConnection(port, failure.resolve, 20);
  const response = await new Promise<HttpResponse>((resolve) =>
    connection.send(formatRequest('/sync', '{}'), resolve),
  );
  expect({ status: response.status, connections: accepted.length }).toEqual({ status: 200, connections: 3 });
  accepted.at(-1)!.resetAndDestroy();
  expect(await failure.promise).toMatchObject({ code: 'ECONNRESET' });
  server.close();
});

test('the report of a dead replica includes the end of its log', () => {
  expect(describeDeath('api on port 1', 'SIGKILL', 'first\nlast\n')).toBe(
    'api on port 1 ended with SIGKILL. The end of its log:\nfirst\nlast',
  );
});
