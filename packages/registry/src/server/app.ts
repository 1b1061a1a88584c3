import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { ActiveSpan } from '@skep/core/telemetry/active-span.ts';
import type { Server } from 'node:http';
import type { RequestLog } from '../api/http/access-log.ts';
import type { AdminParts } from '../api/route/admin-parts.ts';
import { withBodyLimits } from '../api/route/body-limits.ts';
import type { HostRules } from '../api/http/guard.ts';
import { createListener, type ListenerOptions } from '../api/http/listener.ts';
import { openApiDocument } from '../api/openapi/openapi.ts';
import type { ApiContext } from '../api/route/route.ts';
import { ROUTES } from '../api/routes.ts';
import { OPEN_DOOR, openSignIn } from '../api/sign-in/sign-in.ts';
import { SignInSlot } from '../api/sign-in/sign-in-slot.ts';
import type { BuildInfo } from '../config/build-info.ts';
import { type CatalogueOptions, openCatalogue } from './catalogue.ts';
import type { AuthConfig } from '../config/auth.ts';
import type { RegistryConfig } from '../config/config.ts';
import { closeServer, drain } from './drain.ts';
import { ReadEngine } from '../engine/read-engine.ts';
import type { ServeAddresses } from './serve-addresses.ts';
import { assertFree, listenOn } from './listen.ts';
import { isOnLoopback } from './listen-address.ts';
import { openOperations, type Operations, type OperationsServices } from './operations.ts';
import { type Reloadable, reloading } from './reload.ts';
import { type OpenedStore, openStore, type StorePlace } from '../store/open-store.ts';
import { type Clock, utcTime } from '@skep/core/time/clock.ts';
import type { Ingest } from '../sync/ingest.ts';
import { sourceGauges } from '../telemetry/registry-metrics.ts';
import { tracedStore } from '../telemetry/traced-store.ts';
import { holdTickShape } from './tick-shape.ts';

export interface AppOptions {
  readonly config: RegistryConfig;
  readonly storePlace: StorePlace;
  readonly addresses: ServeAddresses;
  readonly build: BuildInfo;
  readonly log: Log;
  /** Lines for requests of the public listener. */
  readonly requestLog: RequestLog;
  /** Answers are encoded where a caller asks for it. */
  readonly compress: boolean;
  /** Which span code belongs to; the log reads it too. */
  readonly active: ActiveSpan;
  /** Where audit lines go that go to no file. */
  readonly stdout: { write(text: string): unknown };
  /** For the programs that sources use. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where temporary folders are made. */
  readonly tempDir: string;
  readonly ingest: Ingest;
  readonly clock: Clock;
  readonly random: () => number;
  readonly randomId: () => string;
  /** Called once everything is loaded and nothing is served yet. */
  readonly releaseMemory: () => void;
  /** Ends a start that still waits for sources; it then fails with the signal's reason. */
  readonly stop: AbortSignal;
}

/** A running registry. */
export interface App {
  /** Base URLs without trailing slash. */
  readonly urls: { readonly public: string; readonly internal: string };
  readonly engine: ReadEngine;
  /**
   * Takes over a new configuration, or fails as a start would, changing nothing. Resolves with the keys of what has
   * changed in it and needs a restart. One at a time.
   */
  reload(config: RegistryConfig): Promise<readonly string[]>;
  /** Asks every identity provider once, so that a wrong address shows in the log before the first caller meets it. */
  askProviders(): void;
  /** Opens files anew that a log rotator has moved. */
  reopenLogs(): Promise<void>;
  /**
   * Stops in an order in which nothing that runs loses what it needs (docs/behaviour/registry.md#start-and-stop): not
   * ready, no new connections, up to 30 s for requests that run, synchronisations, audit log and telemetry, store.
   * Idempotent.
   */
  close(): Promise<void>;
}

interface State extends Reloadable {
  started: boolean;
  store: OpenedStore | undefined;
}

/**
 * Starts in an order in which nothing is served half ready (docs/behaviour/registry.md#start-and-stop): readiness
 * answers 503 from the first moment, the store is brought in line with the configuration, every source is loaded, and
 * only then the public listener opens. A failure at any step takes back the steps before it, also a store file that
 * this start has made.
 */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, addresses, log } = options;
  const engine = new ReadEngine(config.registries);
  const first = await openSignIn(config.auth, { clock: options.clock, random: options.random, log });
  const signIn = new SignInSlot(first, options.clock);
  const state: State = {
    config,
    limits: config.limits,
    reloading: undefined,
    started: false,
    ready: false,
    signIn,
    store: undefined,
    operations: undefined,
    catalogue: undefined,
  };
  const context = contextOf(options, { engine, state });
  const closers: (() => Promise<void>)[] = [];
  closers.push(() => Promise.resolve(signIn.close()));
  const releaseTick = holdTickShape();
  closers.push(() => Promise.resolve(releaseTick()));
  try {
    await assertFree(addresses.public, '--address');
    // Operators' probes carry no token, and what they ask for by mistake is simply not there.
    const unguarded = { ...context, signIn: () => OPEN_DOOR };
    const internal = listenerFor('internal', options, { context: unguarded, state });
    closers.push(() => closeServer(internal));
    const internalUrl = await listenOn(internal, addresses.internal, '--internal-address');
    const store = await openStore(options.storePlace, { clock: options.clock, log });
    state.store = store;
    closers.push(() => (state.started ? store.close() : store.discard()));
    await store.forgetLeases?.();
    const operations = await openOperations(config, operationsServices(options, { engine, store }));
    state.operations = operations;
    const traced = operations.tracing === undefined ? store : tracedStore(store, operations.tracing);
    state.store = traced;
    closers.push(() => operations.close());
    const catalogue = await openCatalogue(catalogueOptions(options, { store: traced, engine, operations }));
    state.catalogue = catalogue;
    closers.push(() => catalogue.close());
    options.releaseMemory();
    const open = listenerFor('public', options, { context, operations, state });
    closers.push(() => drain(open, options.clock));
    const publicUrl = await listenOn(open, addresses.public, '--address');
    Object.assign(state, { started: true, ready: true });
    const urls = { public: publicUrl, internal: internalUrl };
    const running = { engine, operations, urls, signIn, reload: reloading(options, state) };
    return runningApp(running, async () => {
      state.ready = false;
      await state.reloading;
      await closeAll(closers, log);
    });
  } catch (error) {
    await closeAll(closers, log);
    throw error;
  }
}

interface RunningParts {
  readonly operations: Operations;
  readonly signIn: SignInSlot;
}

function runningApp(
  { engine, reload, operations, signIn, urls }: Pick<App, 'engine' | 'urls' | 'reload'> & RunningParts,
  stop: () => Promise<void>,
): App {
  let closing: Promise<void> | undefined;
  return {
    urls,
    engine,
    reload,
    askProviders: () => signIn.askProviders(),
    reopenLogs: () => operations.reopenAudit(),
    close: () => (closing ??= stop()),
  };
}

interface ContextParts {
  readonly engine: ReadEngine;
  readonly state: State;
}

function contextOf(options: AppOptions, { engine, state }: ContextParts): ApiContext {
  const { build } = options;
  const { limits } = options.config;
  const openApi = JSON.stringify(
    openApiDocument({ routes: withBodyLimits(ROUTES, limits), version: build.version, limits }),
  );
  return {
    build,
    limits: () => state.limits,
    snapshot: () => engine.current(),
    signIn: () => state.signIn.current,
    providersAway: () => state.signIn.away(),
    admin: () => adminParts(options, { engine, state }),
    openApi: () => openApi,
    metrics: async () => {
      const scrape = state.operations?.scrape;
      if (scrape === undefined) throw new SkepError('registry/no-such-route');
      return scrape();
    },
    ready: async () => {
      if (!state.ready || state.store === undefined) throw new SkepError('registry/not-ready');
      await state.store.ping().catch((cause: unknown) => {
        throw new SkepError('registry/not-ready', { cause });
      });
    },
  };
}

interface ListenerParts {
  readonly context: ApiContext;
  readonly state: State;
  readonly operations?: Operations;
}

function listenerFor(
  listener: 'public' | 'internal',
  options: AppOptions,
  { context, operations, state }: ListenerParts,
): Server {
  const { randomId } = options;
  const { limits } = options.config;
  const routes = withBodyLimits(ROUTES, limits).filter((route) => route.listener === listener);
  const log = options.log.child({ listener });
  // Probes ask the internal listener every few seconds.
  const requestLog = listener === 'public' ? options.requestLog : 'debug';
  const { observers = [], tracing } = operations ?? {};
  return createListener({
    routes,
    context,
    randomId,
    log,
    requestLog,
    observers,
    tracing,
    clock: options.clock,
    requestMs: limits.requestTimeout,
    ...(listener === 'public' ? publicLimits(options, state) : internalLimits(options)),
  });
}

function publicLimits(
  { config: { cors }, compress }: AppOptions,
  state: State,
): Pick<ListenerOptions, 'compress' | 'requestRate' | 'refusalRate' | 'hosts' | 'cors'> {
  return {
    compress,
    requestRate: () => state.limits.requestRate,
    refusalRate: () => state.limits.refusalRate,
    hosts: hostRules(state, cors?.allowedOrigins),
    ...(cors === undefined ? {} : { cors }),
  };
}

/** On this machine alone no page in a browser of it may read them by a name that it lets point here. */
function internalLimits({ addresses }: AppOptions): Pick<ListenerOptions, 'hosts'> {
  if (!isOnLoopback(addresses.internal)) return {};
  const rules = { hosts: [], origins: undefined };
  return { hosts: () => rules };
}

/** Those of the configuration as it is now, the same object as long as it is the same. */
function hostRules(state: State, origins: HostRules['origins']): () => HostRules | undefined {
  let made: { readonly auth: AuthConfig; readonly rules: HostRules | undefined } | undefined;
  return () => {
    const { auth } = state.config;
    if (made?.auth !== auth) {
      const isOpen = auth.mode === 'anonymous';
      made = { auth, rules: isOpen ? { hosts: auth.allowedHosts, origins, known: new Set() } : undefined };
    }
    return made.rules;
  };
}

function operationsServices(
  { log, active, stdout, clock, randomId, build, requestLog }: AppOptions,
  { engine, store }: Pick<CatalogueParts, 'engine' | 'store'>,
): OperationsServices {
  return {
    log,
    active,
    stdout,
    randomId,
    build,
    now: () => utcTime(clock),
    watched: requestLog !== 'none',
    sources: () => sourceGauges(engine),
    snapshot: () => engine.current(),
    pool: store.pool?.bind(store),
  };
}

function adminParts({ ingest, log }: AppOptions, { engine, state }: ContextParts): AdminParts {
  const { store, catalogue } = state;
  if (store === undefined || catalogue === undefined) throw new SkepError('registry/not-ready');
  return {
    store,
    log,
    ingest,
    sync: catalogue.sync,
    applied: (revision) => catalogue.applied(revision),
    serves: (identity) => engine.serves(identity),
  };
}

interface CatalogueParts {
  readonly store: OpenedStore;
  readonly engine: ReadEngine;
  readonly operations: Operations;
}

function catalogueOptions(
  { config, build, env, tempDir, ingest, clock, random, randomId, log, stop }: AppOptions,
  { store, engine, operations }: CatalogueParts,
): CatalogueOptions {
  return {
    config,
    store,
    engine,
    ingest,
    clock,
    random,
    randomId,
    log,
    stop,
    surroundings: { env, tempDir, userAgent: `skep-registry/${build.version}` },
    observe: (event) => operations.synced(event),
    reconciled: (report) => operations.reconciled(report),
  };
}

/** Closes in the reverse order of opening. One that fails does not keep the others open. */
async function closeAll(closers: readonly (() => Promise<void>)[], log: Log): Promise<void> {
  for (const close of closers.toReversed()) {
    try {
      await close();
    } catch (error) {
      log.error({ err: error }, 'closing failed');
    }
  }
}
