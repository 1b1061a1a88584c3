import type { IncomingMessage, ServerResponse } from 'node:http';
import { localIdentity, type Identity } from '@skep/auth/token/identity.ts';
import type { Log } from '@skep/core/log/log.ts';
import { systemClock, type Clock } from '@skep/core/time/clock.ts';
import type { Backend, Condition, Front, RemoteToken } from './backend/backend.ts';
import { frontOf } from './front.ts';
import { newCall } from './call/call.ts';
import { chain, compose, looksInside, type OptionalSteps, type Step } from './call/chain.ts';
import { limitedLog, type LimitedLog } from './backend/limited-log.ts';
import { asides, isAside } from './endpoint/asides.ts';
import { newPass, takePass } from './call/pass.ts';
import { refuse, recovery } from './call/refuse.ts';
import { countTools, ToolCounts, type ToolCount } from './call/tool-counts.ts';
import { readTarget, type RequestTarget } from './call/target.ts';
import { UnreadBudget } from './endpoint/unread-budget.ts';
import { drain, drainResponses } from '@skep/core/fetch/listen.ts';
import { OpenResponses } from '@skep/core/fetch/open-responses.ts';
import { httpServer, listenOn } from './listener.ts';
import { BodyBudget } from './steps/body-budget.ts';
import { bodyLimit } from './steps/body-limit.ts';
import { mcpParser } from './steps/mcp-parser.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isLoopback } from '@skep/core/fetch/loopback.ts';
import { ownTasks, type OwnTasks } from './steps/own-tasks.ts';
import type { Part, PartServices } from './steps/part.ts';
import { openParts, type PartSettings } from './steps/parts.ts';
import { origin } from './steps/origin.ts';
import { remoteToken } from './steps/remote-token.ts';
import { openSessionStore, type SessionStoreSettings } from './backend/replicas/open-session-store.ts';
import type { SessionStore } from './backend/replicas/session-store.ts';
import type { SignIn, SignInServices, SignInSettings } from './steps/sign-in.ts';
import type { JsonObject } from './message/json-rpc.ts';
import type { ProxyLimits } from './settings.ts';

export interface ProxyOptions extends ProxyLimits {
  /** Workload name, for health and logs. */
  readonly name: string;
  /** Address to listen on. */
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  readonly backend: Backend;
  /** What clients of a stdio server speak: streamable HTTP by default. Those of another speak what it does. */
  readonly mode?: 'streamable-http' | 'sse';
  /** A server of streamable HTTP that has no sessions: its clients have nothing to GET and DELETE. */
  readonly stateless?: boolean;
  /** Unknown protocol versions are refused here also where a server speaks HTTP itself. */
  readonly strictVersions?: boolean;
  /** What stands before every path where clients see it, for addresses that they are handed (`--endpoint-prefix`). */
  readonly endpointPrefix?: string | undefined;
  /** Told when how a server that speaks HTTP is has changed (docs/behaviour/proxy.md#health). */
  readonly onCondition?: (condition: Condition) => void;
  /** What comes with settings; nothing by default. */
  readonly parts?: PartSettings;
  /** Rows of the chain beside those of `parts`. */
  readonly steps?: OptionalSteps;
  /** Origins of web pages that may call, beside the proxy's own; their hosts are names of the proxy as well. */
  readonly allowedOrigins?: readonly string[];
  readonly trustProxyHeaders: boolean;
  /** What a stdio server is told as its client's version. */
  readonly skepVersion: string;
  /** Who started the proxy, for the local identity; anonymous when unknown. */
  readonly osUser?: string;
  /** What clients have to sign in with; without it everybody who reaches the endpoint is `osUser`. */
  readonly signIn?: SignInSettings;
  /** Where replicas of this proxy share the sessions of a server of streamable HTTP (docs/behaviour/proxy.md#many-replicas). */
  readonly sessionStore?: SessionStoreSettings | undefined;
  /** In [0, 1), for pauses between attempts; without it they do not vary. */
  readonly random?: () => number;
  /** Shared with the other proxies of this process; of its own by default. */
  readonly budgets?: Budgets;
  /** Real time by default. */
  readonly clock?: Clock;
  readonly log: Log;
}

/** One listening MCP endpoint in front of one backend. */
export interface Proxy {
  /** What clients connect to, for example `http://127.0.0.1:4001/mcp`. */
  readonly url: string;
  readonly port: number;
  /**
   * Makes the handshake with a stdio server now, for all clients to come. Resolves with its result, or undefined
   * when it answered with an error; rejects with a code of the proxy when it cannot answer any more. Absent for
   * HTTP servers, with which every client shakes hands itself.
   */
  readonly greet?: () => Promise<unknown>;
  /**
   * Asks a server that was greeted, without any client. Resolves with the text of its answer, an error too; rejects with a
   * code of the proxy when it cannot answer. There where `greet` is.
   */
  readonly ask?: (method: string, params: JsonObject) => Promise<string>;
  /**
   * What the process that hosts the proxy shows in `PASS_HEADER` with calls of its own: it need not sign in, is no client to
   * whoever counts or audits them, and nobody else has it.
   */
  readonly pass?: string;
  /** What was counted of the tools since the start, in the order in which they were first called. */
  readonly toolCounts?: () => readonly ToolCount[];
  /** The backend's process has ended: clients are told to come back later, and nothing of it is kept. */
  backendEnded(): void;
  /** The backend was restarted: sessions and the cached handshake are void, and the proxy attaches to it again. */
  backendStarted(): void;
  /**
   * The same endpoint for another listener of this process: the same chain, limits and sessions, for the hosts and
   * pages of that listener.
   */
  behind(entrance: Entrance): Serve;
  /** Ends streams, waits for calls in flight (bounded), frees the port. Idempotent. */
  close(): Promise<void>;
}

/** How clients come to a proxy. */
export interface Entrance {
  /** The address and port that the listener has. */
  readonly host: string;
  readonly port: number;
  /** What stands before the proxy's own paths there, such as `/github`; empty on its own port. */
  readonly prefix: string;
}

/** Answers one request, whose target is as the proxy's own listener would see it. */
export type Serve = (req: IncomingMessage, res: ServerResponse, target: RequestTarget) => void;

/**
 * Listens and serves. Rejects with `proxy/port-busy` or `proxy/listen-failed` when the address cannot be had, with
 * `proxy/step-unbuildable` when a step cannot be built, as `openSignIn` does for what clients sign in with, and with the
 * backend's own error when it cannot be attached.
 */
export async function startProxy(options: ProxyOptions): Promise<Proxy> {
  const clock = options.clock ?? systemClock;
  const budgets = options.budgets ?? newBudgets();
  const log = options.log.child({ workload: options.name });
  // What may be said with each call, or each connection.
  const limited = limitedLog(log, clock);
  const pass = newPass();
  const toolCounts = new ToolCounts();
  const ask = askThrough(() => ({ front, part }));
  const opened = await openSteps({ ...options, toolCounts, clock, log, ask });
  const { signIn, part, steps, reads, tasks } = opened;
  const open = { ...opened, limited, token: shownBy(options) };
  const front: Front = frontOf({
    ...options,
    ...open,
    mode: options.mode ?? 'streamable-http',
    looksInside: reads,
    signedIn: options.signIn !== undefined,
    toolsChanged: part.toolsChanged,
    unread: budgets.unread,
    clock,
    log,
  });
  const server = httpServer();
  try {
    await front.attach?.();
    const port = await listenOn(server, options.host, options.port);
    let closed: Promise<void> | undefined;
    const isClosing = (): boolean => closed !== undefined;
    const served = { front, signIn, pass, toolCounts, scrape: part.scrape, isClosing, limited, tasks };
    const serveAt = handlers({ ...options, steps, budgets, clock, log }, served);
    const serve = serveAt({ host: options.host, port, prefix: '' });
    server.on('request', (req, res) => serve(req, res, readTarget(req.url ?? '/')));
    const guests = new OpenResponses();
    // Accepting may fail for want of descriptors; without a listener that would end the process.
    server.on('error', (error) => limited.warn({ err: error }, 'a connection could not be accepted'));
    warnIfOpen(options, log);
    const close = async (): Promise<void> => {
      front.drain();
      const draining = { clock, graceMs: options.graceMs, beforeCut: () => front.close() };
      await Promise.all([drain(server, draining), drainResponses(guests, draining)]);
      front.close();
      await closeSteps(open, clock);
    };
    return {
      url: `http://${inUrl(options.host)}:${port}${front.path}`,
      port,
      ...(front.greet === undefined ? {} : { greet: front.greet }),
      ...(front.ask === undefined ? {} : { ask: front.ask }),
      pass,
      toolCounts: () => toolCounts.all,
      backendEnded: () => front.backendEnded?.(),
      backendStarted: () =>
        [part.serverStarted, tasks?.forget, front.backendStarted].forEach((tell) => tell?.()),
      behind(entrance) {
        const serveThere = serveAt(entrance);
        return (req, res, target) => {
          guests.add(res);
          serveThere(req, res, target);
        };
      },
      close: () => (closed ??= close()),
    };
  } catch (error) {
    front.close();
    server.close();
    await closeSteps(open, clock);
    throw error;
  }
}

interface Opening extends ProxyOptions, Pick<PartServices, 'ask'> {
  readonly toolCounts: ToolCounts;
  readonly clock: Clock;
  readonly log: Log;
}

interface Opened {
  readonly signIn: SignIn | undefined;
  readonly part: Part;
  /** All that come with settings. */
  readonly steps: OptionalSteps;
  /** There where clients of one process sign in. */
  readonly tasks: OwnTasks | undefined;
  /** One of them looks into messages. */
  readonly reads: boolean;
  readonly sessionStore: SessionStore | undefined;
}

/** Nothing is loaded that no setting asks for, and nothing is left open when it fails. */
async function openSteps(options: Opening): Promise<Opened> {
  const { backend, parts, random = () => 0.5 } = options;
  const services = { ...options, random };
  const signIn = await openSignInOf(options.signIn, services);
  let part: Part | undefined;
  try {
    const transport = backend.kind === 'http' ? 'streamable-http' : backend.kind;
    part = await openParts(parts ?? {}, { ...services, transport });
    const steps = { ...options.steps, ...part.steps };
    const reads = looksInside(steps, backend.kind === 'sse' ? 'elsewhere' : 'in-place');
    const sessionStore = await openSessionStore(options.sessionStore, options);
    const tasks = signIn && transport === 'stdio' ? ownTasks() : undefined;
    return { signIn, part, steps, reads, sessionStore, tasks };
  } catch (error) {
    signIn?.close();
    await part?.close?.();
    throw error;
  }
}

async function openSignInOf(
  settings: SignInSettings | undefined,
  services: SignInServices,
): Promise<SignIn | undefined> {
  if (settings === undefined) return undefined;
  return (await import('./steps/sign-in.ts')).openSignIn(settings, services);
}

interface Served {
  readonly front: Front;
  readonly signIn: SignIn | undefined;
  readonly pass: string;
  readonly toolCounts: ToolCounts;
  readonly scrape: Part['scrape'];
  readonly isClosing: () => boolean;
  readonly limited: Log;
  readonly tasks: OwnTasks | undefined;
}

/** Builds the chain, once per entrance out of the same steps; the only place where steps meet their settings. */
function handlers(
  options: ProxyOptions & { readonly budgets: Budgets; readonly clock: Clock },
  { front, signIn, pass, toolCounts, scrape, isClosing, limited, tasks }: Served,
): (entrance: Entrance) => Serve {
  const { log, clock, allowedOrigins = [] } = options;
  const shown = shownBy(options);
  const steps = {
    ...options.steps,
    ...(shown && { 'outgoing-token': remoteToken(shown, limited) }),
    recovery: recovery(log),
    'body-limit': bodyLimit(options.bodyLimitBytes, options.budgets.bodies),
    auth: signIn?.auth ?? everybodyIs(options.osUser, clock),
    ...(signIn && { 'client-token': signIn.clientToken }),
    'mcp-parser': mcpParser(options.strictVersions === true ? { ...front, revisions: 'known' } : front),
    telemetry: both(countTools(toolCounts, clock), options.steps?.telemetry),
    transport: unlessGone(tasks === undefined ? front.step : both(tasks.step, front.step)),
  };
  const answerAside = asides({
    health: () => front.health(),
    metadata: (call) => signIn?.metadata(call, front.path),
    scrape: scrape && joined(scrape),
    clock,
  });
  return ({ host: bindHost, port, prefix }) => {
    const guard = origin({ bindHost, port, allowedOrigins, isShared: prefix !== '' });
    const throughChain = compose(chain({ ...steps, origin: guard }));
    const besideChain = compose([steps.recovery, guard, answerAside].map((run) => ({ run })));
    return (req, res, target) => {
      if (isClosing()) {
        refuse(res, 'proxy/shutting-down', { headers: { Connection: 'close' } });
        return;
      }
      const call = newCall(req, res, target, prefix);
      call.answerer = front.answerer;
      call.isOwn = takePass(req, pass);
      const { path } = call;
      // Lives as long as the response, so it must not hold the call with its body.
      const failed = (error: unknown): void => {
        log.error({ err: error, path }, 'an answer could not be written');
        res.destroy();
      };
      res.on('error', failed);
      (isAside(call.path) ? besideChain(call) : throughChain(call)).catch(failed);
    };
  };
}

function shownBy({ backend }: Pick<ProxyOptions, 'backend'>): RemoteToken | undefined {
  return backend.kind === 'stdio' ? undefined : backend.remote?.token;
}

/** Longer than one request to a token endpoint may take. */
const KEEPING_MS = 12_000;

interface Open extends Pick<Opened, 'signIn' | 'part' | 'sessionStore'> {
  readonly limited: LimitedLog;
  readonly token: RemoteToken | undefined;
}

/** Waits also until what a refresh gets has been kept, which whoever ends the process afterwards would lose. */
async function closeSteps({ signIn, part, limited, token, sessionStore }: Open, clock: Clock): Promise<void> {
  signIn?.close();
  sessionStore?.close();
  limited.close();
  await part.close?.();
  if (token === undefined) return;
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const end = clock.after(KEEPING_MS, resolve);
  await Promise.race([token.close(), late]).finally(() => end.cancel());
}

/**
 * Asks the server of a front that is there when calls come, and shows it what the call itself will be shown: to others it may
 * answer otherwise.
 */
function askThrough(
  opened: () => { readonly front: Front; readonly part: Part },
): NonNullable<PartServices['ask']> {
  return async (call, method, params) => {
    const { front, part } = opened();
    call.credentials = await part.credentialsFor?.(call);
    const { askFor } = front;
    if (askFor === undefined) throw new SkepError('proxy/backend-away');
    return askFor(call, method, params);
  };
}

/** One step around another, where there is one. */
function both(outer: Step, inner: Step | undefined): Step {
  return inner === undefined ? outer : (call, next) => outer(call, () => inner(call, next));
}

/** The end of a response is told once: who has gone by now would be listened for in vain. */
function unlessGone(step: Step): Step {
  return (call, next) => (call.res.destroyed ? Promise.resolve() : step(call, next));
}

/** Whoever asks while the work is under way gets what comes of it: nobody can have it done many times at once. */
function joined<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => (running ??= work().finally(() => (running = undefined)));
}

/** Without an identity provider everybody is who started the proxy; an Authorization header says nothing. */
function everybodyIs(osUser: string | undefined, clock: Clock): Step {
  let second = Number.NaN;
  let identity: Identity | undefined;
  return (call, next) => {
    // It says the same within a second, and what is decided about it is remembered by it.
    const now = Math.floor(clock.now() / 1_000);
    if (now !== second) identity = localIdentity(osUser, now * 1_000);
    second = now;
    call.identity = identity;
    return next();
  };
}

function warnIfOpen(options: ProxyOptions, log: Log): void {
  if (isLoopback(options.host) || options.signIn !== undefined) return;
  log.warn(
    { host: options.host },
    'listening beyond this machine: whoever reaches the address can call the server',
  );
}

function inUrl(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
}

/** What all proxies of one process may hold together. */
export interface Budgets {
  readonly bodies: BodyBudget;
  readonly unread: UnreadBudget;
}

export function newBudgets(): Budgets {
  return { bodies: new BodyBudget(), unread: new UnreadBudget() };
}
