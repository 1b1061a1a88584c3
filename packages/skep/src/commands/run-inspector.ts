import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { errnoOf } from '@skep/core/files/errno.ts';
import { makeDirectory } from '@skep/core/files/make-directory.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printableLines } from '@skep/core/terminal/printable.ts';
import type { Timer } from '@skep/core/time/clock.ts';
import type { Context } from '../cli/context.ts';
import { choosePort } from '../runtime/free-port.ts';
import type { ProcessIdentity } from '../supervisor/process-identity.ts';
import type { Place } from './place-of-server.ts';

/** Of this version is what Skep is tested with; another one may have other flags. */
export const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0';
/** Its own, unless another program has it. */
const PORT = 6274;
const END_WITHIN_MS = 5_000;
const FOLDERS = 'inspector-';
/** As shells say that there is no such program. */
const NOT_FOUND = 127;

export interface Inspected extends Place {
  /** What the inspector is to call it. */
  readonly name: string;
  readonly token: string | undefined;
  /** In the browser. */
  readonly opens: boolean;
}

/**
 * Runs the MCP Inspector until it ends, or until the command is to end. It reads address and token from a file that nobody else
 * can read, in a folder of its own, where no project decides what npx runs (decision 0366). Fails with `inspector/no-npx`, and
 * with `inspector/failed` where it ends by itself with a failure.
 */
export async function runInspector(inspected: Inspected, context: Context): Promise<void> {
  const { places, random, self, signal, terminal } = context;
  const port = await choosePort({
    host: '127.0.0.1',
    had: PORT,
    promised: () => Promise.resolve(new Map()),
    random,
  });
  await makeDirectory(places.stateDir, 0o700);
  await removeLeft(context);
  const folder = await mkdtemp(join(places.stateDir, prefixOf(self)));
  try {
    const file = join(folder, 'servers.json');
    await writeFile(file, configOf(inspected), { mode: 0o600 });
    signal.throwIfAborted();
    const child = startInFolder(folder, ['npx', '--yes', '--ignore-scripts', INSPECTOR, '--config', file], {
      ...environmentOf(context),
      HOST: '127.0.0.1',
      CLIENT_PORT: `${port}`,
      MCP_AUTO_OPEN_ENABLED: `${inspected.opens}`,
    });
    passOn(child.stdout, (text) => terminal.out(text));
    passOn(child.stderr, (text) => terminal.err(text));
    await untilEnd(child, context);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Ends all of the group, and takes the folder away, when nobody holds the other end of standard input any more. */
const WATCHED = `exec 3<&0 </dev/null
(read -r _ <&3; rm -rf -- "$0"; kill -KILL 0) >/dev/null 2>&1 &
exec 3<&-
exec "$@"`;

/** In a group of its own, which ends with this process, however that ends: what a program starts is in it as well. */
export function startInFolder(
  folder: string,
  line: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ChildProcessByStdio<Writable, Readable, Readable> {
  const stdio: ['pipe', 'pipe', 'pipe'] = ['pipe', 'pipe', 'pipe'];
  return spawn('/bin/sh', ['-c', WATCHED, folder, ...line], { cwd: folder, detached: true, stdio, env });
}

/** Says whose folder it is. */
function prefixOf({ pid, started }: ProcessIdentity): string {
  return `${FOLDERS}${pid}-${Buffer.from(started).toString('hex')}-`;
}

/** Folders of processes that were killed; a machine that went down leaves them as well. */
async function removeLeft({ places, isAlive }: Context): Promise<void> {
  for (const name of (await readdir(places.stateDir)).filter((one) => one.startsWith(FOLDERS))) {
    const [, pid, started] = /^(\d+)-([\da-f]+)-[^-]+$/u.exec(name.slice(FOLDERS.length)) ?? [];
    const owner = { pid: Number(pid), started: Buffer.from(started ?? '', 'hex').toString() };
    if (started !== undefined && isAlive(owner)) continue;
    await rm(join(places.stateDir, name), { recursive: true, force: true });
  }
}

/** What Skep is told is not for it, and no other file may take the place of the one that it is given. */
function environmentOf({ env }: Context): Record<string, string | undefined> {
  const others = Object.entries(env).filter(
    ([name]) => !name.startsWith('SKEP_') && name !== 'MCP_CATALOG_PATH',
  );
  return Object.fromEntries(others);
}

/** As the inspector reads it (`--config`). */
function configOf({ name, url, kind, token }: Inspected): string {
  const type = kind === 'sse' ? 'sse' : 'streamable-http';
  const headers = token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } };
  return JSON.stringify({ mcpServers: { [name]: { type, url: url.href, ...headers } } });
}

async function untilEnd(child: ChildProcess, { signal, clock, end }: Context): Promise<void> {
  const endGroup = (how: 'SIGTERM' | 'SIGKILL'): void => {
    if (child.pid !== undefined) end(-child.pid, how);
  };
  let last: Timer | undefined;
  const onAbort = (): void => {
    endGroup('SIGTERM');
    last = clock.after(END_WITHIN_MS, () => endGroup('SIGKILL'));
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const [status] = (await once(child, 'close')) as [number | null];
    if (signal.aborted || status === 0) return;
    if (status === NOT_FOUND) throw new SkepError('inspector/no-npx');
    throw new SkepError('inspector/failed', { detail: { status } });
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') throw new SkepError('inspector/no-npx', { cause: error });
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
    last?.cancel();
    endGroup('SIGKILL');
  }
}

/** A line at a time, as it may tell what a server has said. */
function passOn(stream: Readable, tell: (text: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (piece: string) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) tell(`${printableLines(line)}\n`);
  });
  stream.once('end', () => {
    if (rest !== '') tell(`${printableLines(rest)}\n`);
  });
}
