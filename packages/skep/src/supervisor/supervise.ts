import { hasCode, type SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import type { Places } from '@skep/core/files/places.ts';
import type { Backend, Condition, RemoteToken } from '@skep/proxy/backend/backend.ts';
import type { Proxy, ProxyOptions } from '@skep/proxy/start.ts';
import type { Hardening } from '../permissions/hardening.ts';
import { headersOf } from '../run-config/header-forward.ts';
import { partsOf } from '../run-config/parts.ts';
import { currentTools } from '../run-config/tools.ts';
import { sessionStoreOf } from '../run-config/session-redis.ts';
import { proxyLimits } from '../run-config/proxy-limits.ts';
import { proxySecretOf, signInOf } from '../run-config/sign-in.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { OIDC_CLIENT_SECRET } from '../secrets/reference.ts';
import type { OpenSignIns } from './remote-token.ts';
import type { Observed, Runtime } from '../runtime/runtime.ts';
import type { ProcessIdentity } from './process-identity.ts';
import type { Endpoint, Readiness, Tell } from './protocol.ts';
import {
  forwardTarget,
  GRACE_MS,
  hostPortOf,
  inspectOwn,
  launch,
  vanished,
  type Launched,
} from './launch.ts';
import { absentTools } from './absent-tools.ts';
import type { FoundServer } from './found-server.ts';
import { meetServer, readinessOf } from './meet-server.ts';
import { withLacks } from './lacks.ts';
import { LOOKED_AT, loweredText, triedNext } from './tried-next.ts';
import { workloadLogPath } from './remove-workload.ts';
import { whoIsMissing } from './who-is-missing.ts';
import { crashedAtStart, lastLines, type Failing } from './ready.ts';
import { watch, type WatchDeps } from './watch.ts';
import { LEARNS_LABEL } from './workload-spec.ts';

export interface SuperviseDeps extends WatchDeps {
  readonly startProxy: (options: ProxyOptions) => Promise<Proxy>;
  readonly places: Places;
  /** Skep's own, which servers are told. */
  readonly version: string;
  readonly fetch: typeof fetch;
  /** Where sign-ins are kept. */
  readonly signIns: OpenSignIns;
  /** The home directory of the user, which is never offered to a server that lacks something. */
  readonly home: string;
}

export interface SuperviseOptions {
  /** `resume` keeps a workload that still runs; `start` begins afresh. */
  readonly how: 'start' | 'resume';
  readonly tell: Tell;
  /** Aborts the start, not what comes after it. */
  readonly signal: AbortSignal;
  /** The process that asks, where it has begun to host the workload: what that has started is taken over. */
  readonly begunBy?: ProcessIdentity | undefined;
}

/** One workload with its proxy, hosted in this process. */
export interface Supervised {
  /** Without readiness for a workload that was taken up. */
  readonly endpoint: Endpoint;
  readonly proxy: Proxy;
  /** What the server said of itself, where it was asked. */
  readonly found: FoundServer | undefined;
  /** How hard its container is held, which may be less than was tried; see `lowerHardening`. */
  readonly hardening: RunConfig['hardening'];
  /** Resolves when hosting has ended: by `release`, or because restarts were used up. Never rejects. */
  readonly over: Promise<void>;
  /** Lets go of the workload, which runs on; the next supervisor takes it up. Idempotent. */
  release(): Promise<void>;
}

/**
 * Hosts one workload: starts (or takes up) it and its proxy, waits until it can be used, then watches and restarts it. One
 * that is held too hard to start is started again, held less, and that is told.
 * The same code runs in the supervisor and, with `--foreground`, in the calling process. When it rejects, nothing that
 * it made is left.
 */
export async function supervise(
  config: RunConfig,
  options: SuperviseOptions,
  deps: SuperviseDeps,
): Promise<Supervised> {
  for (let tried = config; ;) {
    const begun = await begin(tried, options, deps);
    if (typeof begun !== 'string') return begun;
    options.tell({ kind: 'warning', text: loweredText(config.name, begun) });
    tried = { ...tried, hardening: begun };
  }
}

/** What it is to be tried with instead, where it does not start as it is held; nothing that was made is left then, either. */
async function begin(
  config: RunConfig,
  options: SuperviseOptions,
  deps: SuperviseDeps,
): Promise<Supervised | Hardening> {
  const noted = deps.status.set('starting');
  // Whoever waits for it hears of it.
  noted.catch(() => {});
  options.tell({ kind: 'step', title: `Starting ${config.name}` });
  const taken = options.how === 'resume' ? await stillRunning(config, deps) : undefined;
  let launched: Launched;
  try {
    const begun = options.begunBy !== undefined;
    const launching = { ...deps, tell: options.tell, renew: options.how !== 'resume', begun, noted };
    launched = taken ? { observed: taken, made: false } : await launch(config, launching);
  } catch (error) {
    const next = await triedNext(config, error, deps);
    if (next === undefined) throw error;
    return next;
  }
  const { observed, made } = launched;
  const condition = conditionRecord(config, deps);
  try {
    await noted;
    const backend = await backendOf(config, observed, deps);
    condition.shows(tokenOf(backend));
    const proxy = await openProxy(config, backend, { ...deps, onCondition: condition.tell }).catch(
      async (error: unknown) => {
        throw (await crashBehind({ ...deps, ...options, name: config.name })) ?? error;
      },
    );
    try {
      options.signal.throwIfAborted();
      const why = taken ? undefined : await whyNotAsked(config, backend);
      if (why !== undefined) options.tell({ kind: 'warning', text: why });
      const asks = !taken && !config.no_check && why === undefined;
      const note = condition.note;
      const found = asks ? await meetServer(config, proxy, { ...deps, ...options, note }) : undefined;
      if (!asks) await note();
      for (const text of found ? await absentTools(await currentTools(config), found) : [])
        options.tell({ kind: 'warning', text });
      const readiness = taken ? undefined : readinessOf(found);
      return host(config, { proxy, hostPort: hostPortOf(observed), readiness, found }, deps);
    } catch (error) {
      await proxy.close();
      throw error;
    }
  } catch (error) {
    const next = taken ? undefined : await triedNext(config, error, deps);
    const lines = (): ReturnType<typeof lastLines> =>
      lastLines(deps.runtime, config.name, { count: LOOKED_AT });
    const told = next ?? (await withLacks(error, config, { ...deps, lines }));
    if (!taken) await endWorkload(config.name, made, deps);
    if (next !== undefined) return next;
    throw told;
  }
}

interface ConditionRecord {
  /** Told once it is known what the server is shown. */
  readonly shows: (token: RemoteToken | undefined) => void;
  readonly tell: (next: Condition) => void;
  readonly note: () => Promise<void>;
}

/** Writes down how the server is by what its proxy tells; before it was noted as running, then. */
function conditionRecord(
  config: RunConfig,
  { status, log }: Pick<SuperviseDeps, 'status' | 'log'>,
): ConditionRecord {
  let condition: Condition = 'fine';
  let token: RemoteToken | undefined;
  let isNoted = false;
  const write = (): Promise<void> => {
    if (condition === 'fine') return status.set('running');
    if (condition === 'failing') return status.set('unhealthy', 'Health check failed');
    if (condition === 'auth_retrying') return status.set('auth_retrying', retryingText(config));
    return status.set('unauthenticated', whoIsMissing(config, token?.state()));
  };
  return {
    shows: (next) => void (token = next),
    tell(next: Condition): void {
      condition = next;
      if (!isNoted) return;
      write().catch((error: unknown) => log.error({ err: error }, 'the status could not be written'));
    },
    note(): Promise<void> {
      isNoted = true;
      return write();
    },
  };
}

function retryingText({ name }: RunConfig): string {
  return `the token of the server cannot be refreshed now, and is tried again; see skep logs --proxy ${name}`;
}

interface Front {
  readonly proxy: Proxy;
  readonly hostPort: number | undefined;
  readonly readiness: Readiness | undefined;
  readonly found: FoundServer | undefined;
}

function host(config: RunConfig, front: Front, deps: SuperviseDeps): Supervised {
  const { proxy, readiness, found } = front;
  const ending = new AbortController();
  const over = watch(config, { ...deps, ...front, signal: ending.signal }).then(() => {
    ending.abort();
    return proxy.close();
  });
  return {
    endpoint: { url: proxy.url, port: proxy.port, ...(readiness && { readiness }) },
    proxy,
    found,
    hardening: config.hardening,
    over,
    release() {
      ending.abort();
      return over;
    },
  };
}

/** One that learned for a command that was killed has more rights than its configuration says, so it is started anew. */
async function stillRunning(config: RunConfig, deps: SuperviseDeps): Promise<Observed | undefined> {
  const seen = await inspectOwn(config.name, deps);
  const isWhole = seen?.state === 'running' && seen.interrupted !== true;
  return isWhole && seen.labels[LEARNS_LABEL] === undefined ? seen : undefined;
}

type OpenDeps = SuperviseDeps & Required<Pick<ProxyOptions, 'onCondition'>>;

/** Why nobody can be asked for now: somebody may have to sign in first. Undefined where the server can be asked. */
async function whyNotAsked(config: RunConfig, backend: Backend): Promise<string | undefined> {
  const token = tokenOf(backend);
  if (token === undefined) return undefined;
  return token.token().then(
    () => undefined,
    (error: unknown) => (hasCode(error, 'auth/unavailable') ? retryingText(config) : whoIsMissing(config)),
  );
}

function tokenOf(backend: Backend): RemoteToken | undefined {
  return backend.kind === 'stdio' ? undefined : backend.remote?.token;
}

async function openProxy(config: RunConfig, backend: Backend, deps: OpenDeps): Promise<Proxy> {
  const secretOf = (target: string) => proxySecretOf(target, config, deps.secrets);
  const signIn = signInOf(config, config.oidc_config && (await secretOf(OIDC_CLIENT_SECRET)));
  return deps.startProxy({
    name: config.name,
    onCondition: deps.onCondition,
    host: config.host,
    port: config.port,
    ...(config.allowed_origins === undefined ? {} : { allowedOrigins: config.allowed_origins }),
    backend,
    mode: config.proxy_mode,
    stateless: config.stateless ?? false,
    strictVersions: config.strict_protocol_validation ?? false,
    trustProxyHeaders: config.trust_proxy_headers,
    ...(signIn && { signIn }),
    parts: await partsOf(config, { ...deps, secretOf, logPath: workloadLogPath(deps.places, config.name) }),
    random: () => deps.random(0, 999) / 1_000,
    endpointPrefix: config.endpoint_prefix?.replace(/\/+$/u, '') || undefined,
    ...proxyLimits(config),
    sessionStore: await sessionStoreOf(config),
    skepVersion: deps.version,
    log: deps.log,
  });
}

/** A server elsewhere; undefined for one that runs here. Values of secrets are in memory alone. */
async function remoteBackend(config: RunConfig, deps: SuperviseDeps): Promise<Backend | undefined> {
  const { remote_url: url, skep_ca_bundle: bundle, header_forward: forwarded, transport } = config;
  if (url === undefined) return undefined;
  const hasToken = config.remote_auth_config !== undefined && config.token_exchange_config === undefined;
  const secretOf = (target: string) => proxySecretOf(target, config, deps.secrets);
  const token =
    hasToken && (await (await import('./remote-token.ts')).openRemoteToken(config, { ...deps, secretOf }));
  return {
    kind: transport === 'sse' ? 'sse' : 'http',
    target: new URL(url),
    remote: {
      allowPrivate: config.remote_allow_private_ip ?? false,
      ca: bundle ? await readCaBundle(bundle) : undefined,
      headers: headersOf(config, forwarded?.add_headers_from_secret ? await deps.secrets() : {}),
      ...(token && { token }),
    },
  };
}

async function backendOf(config: RunConfig, observed: Observed, deps: SuperviseDeps): Promise<Backend> {
  return (await remoteBackend(config, deps)) ?? backendHere(config, observed, deps.runtime);
}

function backendHere(config: RunConfig, observed: Observed, runtime: Runtime): Backend {
  const target = forwardTarget(config, observed);
  if (target) return { kind: config.transport === 'sse' ? 'sse' : 'http', target };
  return { kind: 'stdio', attach: () => runtime.attach(config.name) };
}

/** A proxy cannot attach to a server that has ended or gone already; that it has, and why, is what the person must hear. */
async function crashBehind(failing: Failing): Promise<SkepError | undefined> {
  const seen = await failing.runtime.inspect(failing.name);
  if (seen === undefined) return vanished(failing.name);
  return seen.state === 'exited' ? crashedAtStart(failing, seen.exitCode ?? 1) : undefined;
}

/**
 * After a failed start. What there was before holds what the server has written for itself, and stays. A second failure is
 * logged, the first one is what the person must hear.
 */
async function endWorkload(name: string, made: boolean, { runtime, log }: SuperviseDeps): Promise<void> {
  try {
    await runtime.stop(name, GRACE_MS);
    if (made) await runtime.remove(name);
  } catch (error) {
    log.warn({ err: error, workload: name }, 'could not remove a workload whose start failed');
  }
}
