import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Client } from '@skep/proxy/client.ts';
import type { Context } from '../cli/context.ts';
import { readClientToken } from '../cli/client-token.ts';
import { placeOfServer } from './place-of-server.ts';

const TIMEOUT_MS = 60_000;
const MAX_PAGES = 100;

type Result = Readonly<Record<string, unknown>>;

/** An MCP server that a person asks: a workload through its proxy, or whatever answers at a URL. */
export interface AskedServer {
  /** Fails with `mcp/refused` where the server answers with an error. */
  ask(method: string, params: Result): Promise<Result>;
  /** All items of a list, page by page. */
  list(what: 'tools' | 'resources' | 'prompts'): Promise<readonly Result[]>;
}

/** A server that a command names, and the file with the token that it is shown. */
export interface Named {
  readonly target: string;
  readonly tokenFile: string | undefined;
}

/**
 * Runs `action` with the server that is named. Fails as `readClientToken` and `placeOfServer` do, with `mcp/unreachable`,
 * `mcp/unauthorized`, and as `action` does.
 */
export async function withServer<T>(
  { target, tokenFile }: Named,
  context: Context,
  action: (server: AskedServer) => Promise<T>,
): Promise<T> {
  const token = await readClientToken(tokenFile, context);
  const { url, kind } = await placeOfServer(target, token, context);
  const { openClient } = await import('@skep/proxy/client.ts');
  const { clock, program } = context;
  const services = { clock, log: silentLog, requestTimeoutMs: TIMEOUT_MS, skepVersion: program.version };
  let answered: number | undefined;
  const heard = (status: number): void => {
    answered = status;
  };
  const client = await openClient({ url, kind, token, heard, ...services }).catch((cause: unknown) => {
    if (answered === 401) throw unauthorized(target, token);
    throw answered === 503 ? notNow(target, cause) : failureOf(target, cause);
  });
  if (client === undefined) throw unreachable(target);
  const onAbort = (): void => client.close();
  context.signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await action(serverOf(client, target));
  } finally {
    context.signal.removeEventListener('abort', onAbort);
    client.close();
  }
}

function unauthorized(target: string, token: string | undefined): SkepError {
  const message =
    token === undefined ? `"${target}" wants to know who asks` : `"${target}" does not take the token`;
  return new SkepError('mcp/unauthorized', { message });
}

/** A server that refuses is there, and says why. */
function failureOf(target: string, cause: unknown): SkepError {
  if (!hasCode(cause, 'proxy/server-refused')) return unreachable(target, cause);
  const message = `"${target}" does not let you in: ${cause.message}`;
  return new SkepError('mcp/refused', { message, hint: 'ask whoever runs the server', cause });
}

/** Its proxy answers in the place of a server that cannot be asked, or that somebody has to sign in to. */
function notNow(target: string, cause: unknown): SkepError {
  return new SkepError('mcp/unreachable', {
    message: `"${target}" takes no calls now (503)`,
    hint: isUrl(target) ? 'try again in a few seconds' : `skep status ${target} says why`,
    cause,
  });
}

const isUrl = (target: string): boolean => /^https?:/iu.test(target);

function unreachable(target: string, cause?: unknown): SkepError {
  return new SkepError('mcp/unreachable', {
    message: `"${target}" does not answer as an MCP server`,
    hint: isUrl(target)
      ? 'check the URL: it is the endpoint, such as http://127.0.0.1:4001/mcp'
      : `see skep status ${target} and skep logs ${target}`,
    cause,
  });
}

function serverOf(client: Client, target: string): AskedServer {
  const ask: AskedServer['ask'] = async (method, params) => {
    const text = await client.ask(method, params).catch((cause: unknown) => {
      if (!hasCode(cause, 'proxy/timeout')) throw failureOf(target, cause);
      throw new SkepError('mcp/unreachable', {
        message: `"${target}" has not answered ${method} within ${TIMEOUT_MS / 1_000} s`,
        cause,
      });
    });
    const answer = parsedJson(text);
    const { result, error } = isRecord(answer) ? answer : {};
    if (isRecord(result)) return result;
    const said = isRecord(error) && typeof error['message'] === 'string' ? error['message'] : 'no result';
    throw new SkepError('mcp/refused', { message: `"${target}" refused ${method}: ${printable(said)}` });
  };
  return {
    ask,
    async list(what) {
      const items: Result[] = [];
      let cursor: unknown;
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const result = await ask(`${what}/list`, cursor === undefined ? {} : { cursor });
        const { [what]: some, nextCursor } = result;
        if (Array.isArray(some)) items.push(...some.filter(isRecord));
        if (typeof nextCursor !== 'string') return items;
        cursor = nextCursor;
      }
      return items;
    },
  };
}
