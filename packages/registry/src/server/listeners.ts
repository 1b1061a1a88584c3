import type { Server } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isLoopback } from '@skep/core/fetch/loopback.ts';
import type { HostRules } from '../api/http/guard.ts';
import { createListener } from '../api/http/listener.ts';
import { openApiDocument } from '../api/openapi/openapi.ts';
import { withBodyLimits, type ApiContext } from '../api/route/route.ts';
import { ROUTES } from '../api/routes.ts';
import type { Operations } from './operations.ts';
import type { AppOptions } from './app-options.ts';
import type { Running } from './running.ts';

/** What handlers see of a registry, also while it starts. */
export function apiContext({ build, config, ingest, log }: AppOptions, running: Running): ApiContext {
  const { engine, signIn } = running;
  const { limits } = config;
  const routes = withBodyLimits(ROUTES, limits);
  const openApi = JSON.stringify(openApiDocument({ routes, version: build.version, limits }));
  return {
    build,
    limits: () => running.limits,
    snapshot: () => engine.current(),
    signIn: () => signIn.current,
    providersAway: () => signIn.away(),
    admin: () => {
      const { store, catalogue } = running;
      if (store === undefined || catalogue === undefined) throw new SkepError('registry/not-ready');
      return {
        store,
        log,
        ingest,
        sync: catalogue.sync,
        applied: (revision) => catalogue.applied(revision),
        serves: (identity) => engine.serves(identity),
      };
    },
    openApi: () => openApi,
    metrics: async () => {
      const scrape = running.operations?.scrape;
      if (scrape === undefined) throw new SkepError('registry/no-such-route');
      return scrape();
    },
    ready: async () => {
      if (!running.isReady || running.store === undefined) throw new SkepError('registry/not-ready');
      await running.store.ping().catch((cause: unknown) => {
        throw new SkepError('registry/not-ready', { cause });
      });
    },
  };
}

/** Probes ask it every few seconds. On this machine alone no page in a browser of it may read it by another name. */
export function internalListener(options: AppOptions, context: ApiContext): Server {
  const rules = isLoopback(options.addresses.internal.host) ? { hosts: [], origins: undefined } : undefined;
  return createListener({ ...common(options, 'internal'), context, requestLog: 'debug', hosts: () => rules });
}

/** For callers, whom it tells apart and watches. */
export function publicListener(
  options: AppOptions,
  running: Running,
  context: ApiContext,
  { observers, tracing }: Pick<Operations, 'observers' | 'tracing'>,
): Server {
  const { cors } = options.config;
  return createListener({
    ...common(options, 'public'),
    context,
    observers,
    tracing,
    requestLog: options.requestLog,
    compress: options.compress,
    committingSince: () => running.store?.committingSince?.(),
    requestRate: () => running.limits.requestRate,
    refusalRate: () => running.limits.refusalRate,
    hosts: hostRules(running, cors?.allowedOrigins),
    ...(cors === undefined ? {} : { cors }),
  });
}

function common({ config: { limits }, log, randomId, clock }: AppOptions, listener: 'public' | 'internal') {
  const routes = withBodyLimits(ROUTES, limits).filter((route) => route.listener === listener);
  return { routes, randomId, clock, log: log.child({ listener }), requestMs: limits.requestTimeout };
}

/** Those of the configuration as it is now, the same object as long as it is the same. */
function hostRules(running: Running, origins: HostRules['origins']): () => HostRules | undefined {
  let { auth } = running.config;
  const make = (): HostRules | undefined =>
    auth.mode === 'anonymous' ? { hosts: auth.allowedHosts, origins, known: new Set() } : undefined;
  let rules = make();
  return () => {
    if (running.config.auth !== auth) {
      auth = running.config.auth;
      rules = make();
    }
    return rules;
  };
}
