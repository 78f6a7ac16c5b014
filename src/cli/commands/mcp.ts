import { once } from 'node:events';
import type { Command } from 'commander';
import type { EndpointClient } from '../../client/client.ts';
import { foldText } from '../../domain/text.ts';
import type { BookmarkApi } from '../../mcp/server.ts';
import { CliError } from '../faults.ts';
import { openOwnClient, type Run, type Session } from '../session.ts';

/** The version of the tools. Raise it when a tool changes. */
const VERSION = '2';

/** The longest wait for the scope of the token. */
const SCOPE_MS = 5_000;

/** Adds `mcp`, which serves tools for language models over standard input and output. */
export function addMcpCommand(program: Command, run: Run): void {
  program
    .command('mcp')
    .description('let a language model use your bookmarks (Model Context Protocol over stdio)')
    .action(run(serveMcp));
}

async function serveMcp(session: Session): Promise<void> {
  const client = await openOwnClient(session);
  // The library is loaded here because no other command needs it.
  const [{ serveStdio }, { createMcpServer }] = await Promise.all([
    import('@modelcontextprotocol/server/stdio'),
    import('../../mcp/server.ts'),
  ]).catch(() => {
    throw new CliError('mcp needs the package @modelcontextprotocol/server', 'Install it with npm');
  });
  // If the scope is unknown, for example without a network, the service refuses the writes of a token that may only read.
  const scope = await client.account({ signal: AbortSignal.timeout(SCOPE_MS) }).then(
    (account) => account.scope,
    () => 'write' as const,
  );
  const server = serveStdio(() => createMcpServer(asBookmarkApi(client), VERSION, scope));
  const ended = once(process.stdin, 'end', { signal: session.signal });
  // On Ctrl-C, `ended` rejects. The command then ends as it does at the end of the input.
  await ended.catch(() => {});
  await server.close();
}

/** Returns the client with the method that only the tools need. */
const asBookmarkApi = (client: EndpointClient): BookmarkApi =>
  Object.assign(client, {
    async findUsedTags(text: string, limit: number) {
      const { tags } = await client.listTags();
      const matching = tags.filter(({ name }) => foldText(name).includes(foldText(text)));
      // The sort is stable, so tags with the same use stay in the order of their names.
      const used = matching.toSorted((a, b) => b.bookmark_count - a.bookmark_count);
      return { tags: used.slice(0, limit), total: matching.length };
    },
  });
