import { isRecord } from '@skep/core/json/is-record.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { parseDuration } from '@skep/core/time/duration.ts';
import { utcTime } from '@skep/core/time/clock.ts';
import { member } from '@skep/proxy/message/json-rpc.ts';
import type { Proxy } from '@skep/proxy/start.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { weightOf, type FoundServer } from './found-server.ts';
import { askOverHttp, endSession, untilHttpAnswer, type HttpProbeOptions } from './http-probe.ts';
import { listTools, type AskServer, type Listing } from './list-tools.ts';
import type { Readiness } from './protocol.ts';
import { untilReady, type ReadyOptions } from './ready.ts';

/** Between two looks at an HTTP server that a person waits for. Milliseconds. */
const DELAYS = { first: 10, longest: 500 } as const;
const DEFAULT_PATIENCE_MS = 60_000;
/** Of a name or a version, which a server makes up. */
const MAX_CHARS = 200;
const SHOWN_CHARS = 80;

type Meeting = Omit<ReadyOptions, 'name' | 'ask' | 'where' | 'patienceMs'> &
  Pick<HttpProbeOptions, 'fetch' | 'version'> & {
    /** Writes down that the server has answered, while it is asked for its tools. */
    readonly note: () => Promise<void>;
  };

/** A server that has answered `initialize`. */
interface Greeted {
  /** Undefined where it answered with an error. */
  readonly result: unknown;
  readonly ask: AskServer | undefined;
  readonly end: (signal: AbortSignal) => Promise<void>;
}

/**
 * Waits until the server answers, then asks it for its tools; resolves with what it said of itself. Fails as `untilReady`
 * and `note` do; what a server that has answered says of its tools is no reason to fail.
 */
export async function meetServer(config: RunConfig, proxy: Proxy, meeting: Meeting): Promise<FoundServer> {
  const { name, check_timeout: given } = config;
  const patienceMs = given === undefined ? DEFAULT_PATIENCE_MS : parseDuration(given);
  meeting.tell({ kind: 'step', title: `Waiting for ${name} to answer` });
  const canGreet = proxy.greet !== undefined;
  const greeted = await untilReady<Greeted>({
    ...meeting,
    name,
    patienceMs,
    where: config.transport === 'stdio' ? 'on its standard input' : 'over HTTP',
    ask: (until) => (canGreet ? greetThrough(proxy) : greetOverHttp(proxy, { ...meeting, signal: until })),
  });
  const { signal, clock } = meeting;
  try {
    const { result, ask } = greeted;
    const [listed, noted] = await Promise.allSettled([toolsOf(result, ask, signal), meeting.note()]);
    if (listed.status === 'rejected') throw listed.reason;
    if (noted.status === 'rejected') throw noted.reason;
    const listing = listed.value;
    const version = member(result, 'protocolVersion');
    return {
      ...serverIn(result),
      ...(typeof version === 'string' ? { protocol_version: version.slice(0, MAX_CHARS) } : {}),
      ...(listing === undefined ? {} : { tools: listing.tools }),
      complete: listing?.complete ?? false,
      at: utcTime(clock),
    };
  } finally {
    await greeted.end(signal);
  }
}

/** What the person who waits is told of it. */
export function readinessOf(found: FoundServer | undefined): Readiness {
  if (found === undefined) return { is: 'unchecked' };
  const { server } = found;
  const tools = weightOf(found);
  const named =
    server && printable([server.name, server.version].filter((one) => one !== undefined).join(' '));
  return {
    is: 'answered',
    ...(named === undefined ? {} : { server: named.slice(0, SHOWN_CHARS) }),
    ...(tools === undefined ? {} : { tools }),
  };
}

async function greetThrough({ greet, ask }: Proxy): Promise<Greeted> {
  return { result: await greet?.(), ask, async end() {} };
}

async function greetOverHttp(
  { url: endpoint, pass }: Proxy,
  options: Omit<HttpProbeOptions, 'endpoint' | 'delays'>,
): Promise<Greeted> {
  const server = { endpoint, pass, fetch: options.fetch };
  const greeting = await untilHttpAnswer({ ...options, ...server, delays: DELAYS });
  const { result, session } = greeting;
  return {
    result,
    ask: askOverHttp(greeting, server),
    end: async (signal) => (session === undefined ? undefined : endSession(session, { ...server, signal })),
  };
}

/** Undefined where nobody can say which tools there are. */
async function toolsOf(
  result: unknown,
  ask: AskServer | undefined,
  signal: AbortSignal,
): Promise<Listing | undefined> {
  const capabilities = member(result, 'capabilities');
  if (!isRecord(capabilities) || ask === undefined) return undefined;
  if (!('tools' in capabilities)) return { tools: [], complete: true };
  const listing = await listTools(ask, signal);
  return listing.tools.length === 0 && !listing.complete ? undefined : listing;
}

function serverIn(result: unknown): Pick<FoundServer, 'server'> {
  const info = member(result, 'serverInfo');
  const [name, version] = ['name', 'version'].map((key) => {
    const value = member(info, key);
    return typeof value === 'string' ? value.slice(0, MAX_CHARS) : undefined;
  });
  if (name === undefined) return {};
  return { server: { name, ...(version === undefined ? {} : { version }) } };
}
