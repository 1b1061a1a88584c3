import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Client } from '@skep/proxy/client.ts';
import { findRunConfig } from '../run-config/file.ts';
import { shouldRun } from '../supervisor/state.ts';
import { viewWorkload } from '../workloads/view.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import type { Context } from '../cli/context.ts';

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

/**
 * Runs `action` with the server that `target` names. Fails with `workload/not-found`, `run/ended` for a workload that does not
 * run, `mcp/unreachable`, and as `action` does.
 */
export async function withServer<T>(
  target: string,
  context: Context,
  action: (server: AskedServer) => Promise<T>,
): Promise<T> {
  const { url, kind } = /^https?:/iu.test(target) ? placeOf(target) : await placeOfWorkload(target, context);
  const { openClient } = await import('@skep/proxy/client.ts');
  const { clock, program } = context;
  const services = { clock, log: silentLog, requestTimeoutMs: TIMEOUT_MS, skepVersion: program.version };
  const client = await openClient({ url, kind, ...services }).catch((cause: unknown) => {
    throw unreachable(target, cause);
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

interface Place {
  readonly url: URL;
  readonly kind: 'http' | 'sse';
}

function placeOf(text: string): Place {
  const url = URL.parse(text);
  if (url === null)
    throw new SkepError('usage/invalid-value', {
      message: `"${printable(text)}" is no URL`,
      hint: 'give the endpoint, such as http://127.0.0.1:4001/mcp, or the name of a workload',
    });
  return { url, kind: url.pathname.endsWith('/sse') ? 'sse' : 'http' };
}

async function placeOfWorkload(name: string, context: Context): Promise<Place> {
  await ensureHosted(context);
  const view = await viewWorkload(name, context);
  if (view.status === 'unknown' || !shouldRun(view.status))
    throw new SkepError('run/ended', {
      message: `"${name}" is ${view.status}`,
      hint: `start it with skep start ${name}`,
    });
  if ((await findRunConfig(context.places, name))?.oidc_config !== undefined)
    throw new SkepError('usage/conflict', {
      message: `clients of "${name}" sign in, and this command cannot`,
      hint: `connect a client that signs in to ${view.url}`,
    });
  return { url: new URL(view.url), kind: view.proxyMode === 'sse' ? 'sse' : 'http' };
}

function unreachable(target: string, cause?: unknown): SkepError {
  return new SkepError('mcp/unreachable', {
    message: `"${target}" does not answer as an MCP server`,
    hint: /^https?:/iu.test(target)
      ? 'check the URL: it is the endpoint, such as http://127.0.0.1:4001/mcp'
      : `see skep status ${target} and skep logs ${target}`,
    cause,
  });
}

function serverOf(client: Client, target: string): AskedServer {
  const ask: AskedServer['ask'] = async (method, params) => {
    const text = await client.ask(method, params).catch((cause: unknown) => {
      if (!hasCode(cause, 'proxy/timeout')) throw unreachable(target, cause);
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
