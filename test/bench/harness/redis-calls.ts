import { once } from 'node:events';
import { connect } from 'node:net';

/** Reads a section of Redis's INFO. */
async function readInfo(url: string, section: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(`INFO ${section}\r\n`);
  let text = '';
  while (!/^\$\d+\r\n[\s\S]*\r\n\r\n$/.test(text)) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    text += chunk;
  }
  socket.destroy();
  return text;
}

/** Returns how many times Redis has run scripts by EVALSHA so far. Only the rate limiter uses EVALSHA. */
export async function readScriptCalls(url: string): Promise<number> {
  const text = await readInfo(url, 'commandstats');
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(text)?.[1] ?? 0);
}

/** Returns the number of bytes that Redis has read and written so far. */
export async function readRedisBytes(url: string): Promise<number> {
  const text = await readInfo(url, 'stats');
  const of = (name: string) => Number(new RegExp(`${name}:(\\d+)`).exec(text)?.[1] ?? 0);
  return of('total_net_input_bytes') + of('total_net_output_bytes');
}
