import { openLog, type LogLevel } from '@skep/core/log/pino-log.ts';
import type { Log } from '@skep/core/log/log.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ActiveSpan } from '@skep/core/telemetry/active-span.ts';
import { defineSettings, valuesOf } from '@skep/core/settings/define-settings.ts';
import { type App, startApp } from '../server/app.ts';
import { buildInfo } from '../config/build-info.ts';
import { type Command, COMMON_ROWS } from '../command.ts';
import { storePlace } from '../config/store-place.ts';
import { type Environment, withAliases } from '../config/environment.ts';
import { unreadVariables } from '../config/overrides.ts';
import type { Host } from '../host.ts';
import { Repeated } from './repeated.ts';
import { startWarnings } from '../server/start-warnings.ts';
import { ingestInThread } from '../sync/ingest-thread.ts';
import { loadedFields } from './loaded-fields.ts';
import { problemsError } from './problems.ts';
import { serveAddresses } from '../server/serve-addresses.ts';
import { loadServed, reload } from './serve-config.ts';

const rows = defineSettings([
  {
    name: 'config',
    kind: 'path',
    flag: 'config',
    placeholder: 'FILE',
    group: 'Serving',
    brief: 'the configuration file (YAML); required',
  },
  {
    name: 'address',
    kind: 'string',
    flag: 'address',
    env: 'SKEP_REGISTRY_ADDRESS',
    placeholder: 'host:port',
    group: 'Serving',
    brief: 'where to serve the registries; ":8080", or "127.0.0.1:8080" in anonymous mode',
  },
  {
    name: 'internalAddress',
    kind: 'string',
    flag: 'internal-address',
    env: 'SKEP_REGISTRY_INTERNAL_ADDRESS',
    placeholder: 'host:port',
    group: 'Serving',
    brief: 'where to serve /health, /readiness, /version and /metrics; do not expose it',
    default: '127.0.0.1:8081',
  },
  {
    name: 'authMode',
    kind: 'choice',
    flag: 'auth-mode',
    group: 'Serving',
    brief: 'takes the place of auth.mode in the configuration',
    choices: ['anonymous', 'oauth'],
  },
  {
    name: 'logLevel',
    kind: 'string',
    env: 'SKEP_REGISTRY_LOG_LEVEL',
    group: 'Log',
    brief: 'debug, info, warn or error; LOG_LEVEL is read when it is not set',
  },
  ...COMMON_ROWS,
]);

interface Serving {
  readonly app: App;
  readonly log: Log;
}

type ServeValues = ReturnType<typeof valuesOf<typeof rows>>;

export const serve: Command = {
  usage: 'serve --config FILE [flags]',
  summary: 'Serve the registries of a configuration file',
  description: [
    'Starts when every source of the configuration has been loaded, and looks at each again at its interval. The ' +
      'log is one JSON object per line on standard error.',
    'SIGHUP makes it read the configuration again, and open log files anew; a configuration that cannot be used leaves ' +
      'the old one in place. Every key with one value may also come from a variable: auth.mode is SKEP_REGISTRY_AUTH_MODE.',
  ],
  examples: [
    { command: 'skep-registry serve --config registry.yaml', what: 'on ports 8080 and 8081' },
    {
      command:
        'skep-registry serve --config registry.yaml --address 127.0.0.1:9000 --internal-address 127.0.0.1:9001',
      what: 'for this machine only',
    },
  ],
  rows,
  run: async (host, settings) => {
    const values = valuesOf(rows, settings);
    const stop = stopRequested(host);
    const starting = start(host, values, stop.signal);
    const reloads = new Repeated(async () => {
      // Asked for during the start, it comes after it: the file may have been read before it was changed.
      const serving = await starting.catch(() => undefined);
      if (serving === undefined || stop.signal.aborted) return;
      await reopened(serving);
      await reload(host, values, { ...serving, stop: stop.signal });
    });
    const forgetReload = host.onReload(() => void reloads.request());
    try {
      const { app } = await starting;
      await stop.requested;
      await app.close();
      return 0;
    } catch (error) {
      // Nothing was served yet, and what the start had begun is taken back.
      if (error === stop.signal.reason) return 0;
      throw error;
    } finally {
      forgetReload();
      stop.forget();
    }
  },
};

async function start(host: Host, values: ServeValues, stop: AbortSignal): Promise<Serving> {
  if (values.config === undefined)
    throw new SkepError('usage/missing-argument', { message: 'the flag "--config" is missing' });
  serveAddresses(values, 'oauth');
  const env = withAliases(host.env);
  const loaded = await loadServed(host, { ...values, config: values.config });
  if ('problems' in loaded) throw problemsError(values.config, loaded.problems, host.stderr);
  const addresses = serveAddresses(values, loaded.config.auth.mode);
  const level = logLevelOf(host, values, env);
  const active = new ActiveSpan();
  const log = await openLog({
    level: level.effective,
    fields: { component: 'skep-registry' },
    context: () => active.ids(),
  });
  warnAtStart(log, { env, unknownLevel: level.unknown });
  for (const { fields, message } of startWarnings(loaded.config)) log.warn(fields, message);
  const place = storePlace(loaded.config, host);
  log.info(loadedFields(loaded.config, place), 'configuration loaded');
  let isServing = false;
  const app = await startApp({
    config: loaded.config,
    storePlace: place,
    addresses,
    build: buildInfo({ version: host.nodeVersion, platform: host.platform, arch: host.arch }),
    log,
    requestLog: level.effective === 'error' ? 'none' : 'all',
    compress: env['SKEP_REGISTRY_COMPRESS_RESPONSE'] !== 'false',
    active,
    stdout: host.stdout,
    env: host.env,
    tempDir: host.temp,
    ingest: ingestInThread(host.entry, () => isServing),
    clock: host.clock,
    random: host.random,
    randomId: host.randomId,
    releaseMemory: () => host.releaseMemory(),
    stop,
  });
  isServing = true;
  announce(host, app, log);
  app.askProviders();
  return { app, log };
}

/** Log rotation sends SIGHUP. Where the new file cannot be opened the old one goes on. */
async function reopened({ app, log }: Serving): Promise<void> {
  try {
    await app.reopenLogs();
    log.info({}, 'log files opened anew');
  } catch (err) {
    log.error({ err }, 'the audit log cannot be opened anew; the old file stays in use');
  }
}

const LEVELS: Readonly<Record<string, LogLevel>> = {
  debug: 'debug',
  info: 'info',
  warn: 'warn',
  warning: 'warn',
  error: 'error',
};

interface AskedLevel {
  readonly effective: LogLevel;
  /** What was asked for, when it is no level. */
  readonly unknown?: string;
}

function logLevelOf(host: Host, { logLevel, debug }: ServeValues, env: Environment): AskedLevel {
  const asked = logLevel ?? env['LOG_LEVEL'] ?? '';
  const known = LEVELS[asked.toLowerCase()];
  // People at a terminal get one line in words instead (see announce).
  const usual = host.stderr.isTTY ? 'warn' : 'info';
  const effective = debug ? 'debug' : (known ?? usual);
  return asked === '' || known !== undefined ? { effective } : { effective, unknown: asked };
}

function warnAtStart(
  log: Log,
  { env, unknownLevel }: { readonly env: Environment; readonly unknownLevel: string | undefined },
): void {
  if (unknownLevel !== undefined) {
    log.warn({ level: unknownLevel }, 'unknown log level; use debug, info, warn or error');
  }
  for (const variable of unreadVariables(env)) log.warn({ variable }, 'environment variable is not read');
}

function announce(host: Host, app: App, log: Log): void {
  const registries = [...app.engine.current().registries.values()].map(({ name, groups }) => ({
    name,
    servers: groups.server.all.length,
    url: `${app.urls.public}/registry/${name}/v0.1/servers`,
  }));
  log.info({ ...app.urls, registries }, 'serving');
  if (!host.stderr.isTTY) return;
  for (const { name, servers, url } of registries) {
    host.stderr.write(`Serving registry "${name}" (${String(servers)} servers) at ${url}\n`);
  }
  host.stderr.write('Stop with Ctrl-C.\n');
}

interface StopRequest {
  readonly requested: Promise<void>;
  /** Aborts at the same moment. */
  readonly signal: AbortSignal;
  readonly forget: () => void;
}

/** The first request to stop ends the service in order; the second ends the process at once. */
function stopRequested(host: Host): StopRequest {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = new AbortController();
  const forget = host.onStop(() => {
    if (stop.signal.aborted) host.exit(1);
    stop.abort();
    resolve();
  });
  return { requested: promise, signal: stop.signal, forget };
}
