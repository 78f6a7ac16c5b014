import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { delimiter, dirname, join, resolve } from 'node:path';
import { commandsIn } from '../documents/commands.ts';
import { parseMarkdown } from '../documents/markdown.ts';
import { makeFolder } from '../support/folders.ts';
import { provide } from '../support/programs.ts';
import { runDir } from '../support/run.ts';
import type { Cluster } from './cluster.ts';

/** Plays the operator, who has a checkout, a shell and two documents. Every command comes from one of the documents. */

const PROJECT = resolve(import.meta.dirname, '../..');
const DOCUMENTS = ['docs/operation.md', 'docs/runbook.md'];

/** The time limit that the scripts use here for a roll-out, instead of 20 minutes. */
const ROLL_OUT_LIMIT = '180s';

/** The result of a command. */
export interface Ran {
  code: number;
  output: string;
}

/** Returns a program that replaces `kubectl` and sends its arguments to the cluster. */
const describeShim = (socket: string) => `#!${process.execPath}
const socket = require('node:net').connect(${JSON.stringify(socket)});
let response = '';
socket.setEncoding('utf8').on('data', (text) => { response += text; }).on('end', () => {
  const { code, output } = JSON.parse(response);
  (code === 0 ? process.stdout : process.stderr).write(output);
  process.exitCode = code;
});
socket.end(JSON.stringify({ args: process.argv.slice(2), cwd: process.cwd() }));
`;

/** Runs a command that the replacement for `kubectl` sent. File names are relative to the caller's folder. */
async function answer(cluster: Cluster, request: string): Promise<Ran> {
  const { args, cwd } = JSON.parse(request) as { args: string[]; cwd: string };
  const isPath = (n: number) => /^(-f|--filename|kustomize)$/.test(args[n - 1] ?? '');
  try {
    const output = await cluster.kubectl(args.map((arg, n) => (isPath(n) ? resolve(cwd, arg) : arg)));
    return { code: 0, output };
  } catch (error) {
    return { code: 1, output: `error: ${(error as Error).message}\n` };
  }
}

function listen(cluster: Cluster, socket: string): Server {
  const server = createServer({ allowHalfOpen: true }, (connection) => {
    let request = '';
    connection.setEncoding('utf8').on('data', (chunk: string) => {
      request += chunk;
    });
    connection.on('end', async () => connection.end(JSON.stringify(await answer(cluster, request))));
  });
  return server.listen(socket).unref();
}

/** An operator, who has a checkout of the project and knows only the documents. */
export class Operator implements AsyncDisposable {
  /** The variables of the operator's shell. */
  readonly variables: Record<string, string> = {};
  readonly checkout: string;
  readonly #known: ReadonlySet<string>;
  readonly #path: string;
  readonly #server: Server;

  private constructor(checkout: string, path: string, server: Server) {
    this.checkout = checkout;
    this.#path = path;
    this.#server = server;
    this.#known = new Set(
      DOCUMENTS.flatMap((path) => commandsIn(parseMarkdown(path, readFileSync(join(PROJECT, path), 'utf8')))),
    );
  }

  /** Gives the operator a copy of the manifests to fill in, and a kubectl that reaches the cluster. */
  static async open(cluster: Cluster): Promise<Operator> {
    const checkout = makeFolder('checkout', runDir());
    cpSync(join(PROJECT, 'k8s'), join(checkout, 'k8s'), { recursive: true });
    const programs = join(checkout, '.programs');
    mkdirSync(programs);
    const socket = join(programs, 'cluster.sock');
    writeFileSync(join(programs, 'kubectl'), describeShim(socket));
    chmodSync(join(programs, 'kubectl'), 0o755);
    const postgres = dirname(await provide('postgresql'));
    const path = [programs, postgres, process.env.PATH].join(delimiter);
    return new Operator(checkout, path, listen(cluster, socket));
  }

  /** Returns the command if one of the documents contains it. Otherwise, throws. */
  read(command: string): string {
    if (!this.#known.has(command))
      throw new Error(`${DOCUMENTS.join(' and ')} have no command \`${command}\``);
    return command;
  }

  /**
   * Runs a document's command in the checkout. The given values replace the `…` of the command, in order. A value after
   * `=` is quoted.
   */
  async run(command: string, ...given: string[]): Promise<Ran> {
    const fill = (line: string, value: string) =>
      line.replace(/(=?)…/, (_, sign) => (sign ? `='${value}'` : value));
    return this.#shell(given.reduce(fill, this.read(command)));
  }

  /** Does the same as `run`, for a command that must succeed. Returns its output. */
  async must(command: string, ...given: string[]): Promise<string> {
    const { code, output } = await this.run(command, ...given);
    if (code !== 0) throw new Error(`${command} ended with ${code}:\n${output}`);
    return output;
  }

  /**
   * Runs one of the service's admin commands in a pod, as the documents say. `given` maps texts in the command to their
   * replacements.
   */
  async admin(command: string, given: Record<string, string> = {}): Promise<Record<string, string>> {
    const inPod = this.read('kubectl -n bookmarks exec deploy/api -- node src/main.ts admin …');
    let words = this.read(command).slice('admin '.length);
    for (const [from, value] of Object.entries(given)) words = words.replace(from, value);
    const { code, output } = await this.#shell(inPod.replace('…', words));
    if (code !== 0) throw new Error(`${command} ended with ${code}:\n${output}`);
    return JSON.parse(output);
  }

  #shell(line: string): Promise<Ran> {
    const env = { ...this.variables, ROLL_OUT_LIMIT, PATH: this.#path, HOME: this.checkout, LC_ALL: 'C' };
    return new Promise((done) => {
      const { stdin } = execFile(
        'bash',
        ['-c', line],
        { cwd: this.checkout, env, maxBuffer: 64 << 20 },
        (error, stdout, stderr) =>
          done({ code: error ? Number(error.code ?? 1) : 0, output: stdout + stderr }),
      );
      // The scripts ask for confirmation before they change anything.
      stdin?.on('error', () => {}).end('yes\n');
    });
  }

  /** Runs SQL with psql, connected to this url. */
  sql(url: string, statements: string): string {
    const options = ['--no-psqlrc', '--quiet', '--tuples-only', '--no-align', '--set=ON_ERROR_STOP=1'];
    return execFileSync('psql', [...options, `--dbname=${url}`, `--command=${statements}`], {
      encoding: 'utf8',
      env: { PATH: this.#path },
    }).trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
  }
}
