import { once } from 'node:events';
import type { Command } from 'commander';
import { CliError } from '../faults.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

/** The version of the tools. It rises when a tool changes. */
const VERSION = '1';

/** Adds `mcp`: the tools for language models over standard input and output. */
export function addMcpCommand(program: Command, run: Run): void {
  program
    .command('mcp')
    .description('offer your bookmarks to a language model (Model Context Protocol over stdio)')
    .action(run(serveMcp));
}

async function serveMcp(session: Session): Promise<void> {
  const client = await openOwnClient(session);
  // Other commands need neither the library nor the schemas.
  const [{ serveStdio }, { createMcpServer }] = await Promise.all([
    import('@modelcontextprotocol/server/stdio'),
    import('../../mcp/server.ts'),
  ]).catch(() => {
    throw new CliError('mcp needs the package @modelcontextprotocol/server', 'Install it with npm');
  });
  const server = serveStdio(() => createMcpServer(client, VERSION));
  const ended = once(process.stdin, 'end', { signal: session.signal });
  await ended.catch(() => {});
  await server.close();
}
