import { readdir, readFile, readlink } from 'node:fs/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { RunConfig } from '../run-config/run-config.ts';

/** Where a front door says that it is one. */
export const FRONT_DOOR_PATH = '/.well-known/skep';

const ANSWER_MS = 500;
const MAX_ANSWER_BYTES = 1024;
/** Field 4 of proc_net_tcp(5). */
const LISTENS = '0A';

interface Asking {
  readonly fetch: typeof fetch;
  readonly platform: NodeJS.Platform;
}

/** Who listens on a port of 127.0.0.1, for people: `the Skep supervisor of another home (process 12)`, `node (process 12)`. */
export async function holderOf(port: number, { fetch, platform }: Asking): Promise<string> {
  const skep = await askForSkep(port, fetch);
  if (skep !== undefined) return `the Skep supervisor of another home (process ${skep})`;
  const pid = platform === 'linux' ? await listenerOf(port).catch(() => undefined) : undefined;
  if (pid === undefined) return 'another program';
  const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
  return `${printable(name.trim()) || 'a program'} (process ${pid})`;
}

/** The process of another front door there. */
async function askForSkep(port: number, ask: typeof fetch): Promise<number | undefined> {
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const answer = await ask(`http://127.0.0.1:${port}${FRONT_DOOR_PATH}`, { signal, redirect: 'error' });
    let text = '';
    for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.length > MAX_ANSWER_BYTES) return undefined;
    }
    const said: unknown = JSON.parse(text);
    const pid = isRecord(said) && said['skep'] === 'front-door' ? said['pid'] : undefined;
    return Number.isSafeInteger(pid) ? Number(pid) : undefined;
  } catch {
    return undefined;
  }
}

/** The process whose socket it is, if it is one of this user's. */
async function listenerOf(port: number): Promise<string | undefined> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')),
  );
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const sockets = new Set(
    tables
      .flatMap((table) => table.split('\n'))
      .map((line) => line.trim().split(/\s+/u))
      .filter(([, local, , state]) => local?.endsWith(wanted) === true && state === LISTENS)
      .map((fields) => `socket:[${fields[9]}]`),
  );
  if (sockets.size === 0) return undefined;
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/u.test(name))) {
    for (const fd of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '');
      if (sockets.has(target)) return pid;
    }
  }
  return undefined;
}

/** Says whose the port was, and what a person can do. */
export function takenPort({ name, host, port }: RunConfig, cause: SkepError): SkepError {
  return new SkepError('run/port-busy', {
    message: `port ${port} on ${host}, where the proxy of "${name}" is to listen, is taken by another program`,
    hint: `end what listens there (lsof -i :${port} shows it), or run it with another --proxy-port`,
    cause,
  });
}
