import { once } from 'node:events';
import { openLog, type LogLevel } from '@skep/core/log/pino-log.ts';
import type { Log } from '@skep/core/log/log.ts';
import { ActiveSpan } from '@skep/core/telemetry/active-span.ts';
import { flag, settingsOf, type Values } from '@skep/core/settings/define-settings.ts';
import { startApp, type App } from '../server/app.ts';
import { buildInfo } from '../config/build-info.ts';
import { commonSettings, configSetting, defineCommand, type Host } from './command.ts';
import { storePlace } from '../config/database.ts';
import { withAliases, type Environment } from '../config/environment.ts';
import { unreadVariables } from '../config/overrides.ts';
import { startWarnings } from '../server/start-warnings.ts';
import { ingestInThread } from '../sync/ingest-thread.ts';
import { serveAddresses } from '../server/serve-addresses.ts';
import { loadConfig, readConfig, loadedFields, type ConfigFlags } from './load-config.ts';

const rows = [
  ...settingsOf({ group: 'Serving' }, [
    configSetting('the configuration file (YAML)'),
    flag(
      'string',
      'address',
      'where to serve the registries; ":8080", or "127.0.0.1:8080" in anonymous mode',
      { env: 'SKEP_REGISTRY_ADDRESS', placeholder: 'host:port' },
    ),
    flag(
      'string',
      'internal-address',
      'where to serve /health, /readiness, /version and /metrics; do not expose it',
      { env: 'SKEP_REGISTRY_INTERNAL_ADDRESS', placeholder: 'host:port', default: '127.0.0.1:8081' },
    ),
    flag('choice', 'auth-mode', 'takes the place of auth.mode in the configuration', {
      choices: ['anonymous', 'oauth'],
    }),
  ]),
  ...settingsOf({ group: 'Log' }, [
    {
      name: 'logLevel',
      kind: 'string',
      env: 'SKEP_REGISTRY_LOG_LEVEL',
      brief: 'debug, info, warn or error; LOG_LEVEL is read when it is not set',
    },
  ]),
  ...commonSettings,
] as const;

interface Serving {
  readonly app: App;
  readonly log: Log;
}

type ServeValues = Values<typeof rows>;

export const serve = defineCommand({
  usage: 'skep-registry serve --config FILE [flags]',
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
  settings: rows,
  async run({ values }, host) {
    const { signal } = host;
    const starting = start(host, values);
    const reloadOnce = repeatable(async () => {
      // Asked for during the start, it comes after it: the file may have been read before it was changed.
      const serving = await starting.catch(() => undefined);
      if (serving === undefined || signal.aborted) return;
      await reopenLogs(serving);
      await reload(host, values, serving);
    });
    const forgetReload = host.onReload(() => void reloadOnce());
    try {
      const { app } = await starting;
      if (!signal.aborted) await once(signal, 'abort');
      await app.close();
    } catch (error) {
      // Nothing was served yet, and what the start had begun is taken back.
      if (error !== signal.reason) throw error;
    } finally {
      forgetReload();
    }
  },
});

async function start(host: Host, values: ServeValues): Promise<Serving> {
  serveAddresses(values, 'oauth');
  const env = withAliases(host.env);
  const config = await loadConfig(host, values);
  const addresses = serveAddresses(values, config.auth.mode);
  const { level, unknownLevel } = logLevelOf(host, values, env);
  const active = new ActiveSpan();
  const log = await openLog({
    level,
    fields: { component: 'skep-registry' },
    context: () => active.ids(),
  });
  if (unknownLevel !== undefined) {
    log.warn({ level: unknownLevel }, 'unknown log level; use debug, info, warn or error');
  }
  for (const variable of unreadVariables(env)) log.warn({ variable }, 'environment variable is not read');
  for (const { fields, message } of startWarnings(config)) log.warn(fields, message);
  const place = storePlace(config, host);
  log.info(loadedFields(config, place), 'configuration loaded');
  let isServing = false;
  const app = await startApp({
    config,
    storePlace: place,
    addresses,
    build: buildInfo(host),
    log,
    requestLog: level === 'error' ? 'none' : 'all',
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
    stop: host.signal,
  });
  isServing = true;
  announce(host, app, log);
  app.askProviders();
  return { app, log };
}

/** Log rotation sends SIGHUP. Where the new file cannot be opened the old one goes on. */
async function reopenLogs({ app, log }: Serving): Promise<void> {
  try {
    await app.reopenLogs();
    log.info({}, 'log files opened anew');
  } catch (err) {
    log.error({ err }, 'the audit log cannot be opened anew; the old file stays in use');
  }
}

/** Reads the configuration again (SIGHUP). What cannot be used is one line in the log, and the old one goes on. */
async function reload(host: Host, flags: ConfigFlags, { app, log }: Serving): Promise<void> {
  try {
    const loaded = await readConfig(host, flags);
    if ('problems' in loaded) {
      const { problems } = loaded;
      return log.error({ problems }, 'the new configuration is not valid; the old one stays in use');
    }
    const kept = await app.reload(loaded.config);
    log.info({ path: loaded.config.path }, 'configuration reloaded');
    for (const setting of kept) {
      log.warn(
        { setting },
        'setting has changed and stays as it was at the start; restart to use the new one',
      );
    }
    for (const { fields, message } of startWarnings(loaded.config)) log.warn(fields, message);
  } catch (err) {
    // The program ends, and what it does not take over any more is no fault of the file.
    if (host.signal.aborted) return;
    log.error({ err }, 'the new configuration cannot be used; the old one stays in use');
  }
}

const LEVELS: Readonly<Record<string, LogLevel>> = {
  debug: 'debug',
  info: 'info',
  warn: 'warn',
  warning: 'warn',
  error: 'error',
};

/** The level of the log; `unknownLevel` is what was asked for, when it is none. */
function logLevelOf(host: Host, { logLevel, debug }: ServeValues, env: Environment) {
  const asked = logLevel ?? env['LOG_LEVEL'] ?? '';
  const known = LEVELS[asked.toLowerCase()];
  // People at a terminal get one line in words instead (see announce).
  const usual: LogLevel = host.terminal.liveErr ? 'warn' : 'info';
  const level: LogLevel = debug ? 'debug' : (known ?? usual);
  return { level, unknownLevel: asked === '' || known !== undefined ? undefined : asked };
}

function announce(host: Host, app: App, log: Log): void {
  const registries = [...app.engine.current().registries.values()].map(({ name, groups }) => ({
    name,
    servers: groups.server.all.length,
    url: `${app.urls.public}/registry/${name}/v0.1/servers`,
  }));
  log.info({ ...app.urls, registries }, 'serving');
  if (!host.terminal.liveErr) return;
  for (const { name, servers, url } of registries) {
    host.terminal.err(`Serving registry "${name}" (${servers} servers) at ${url}\n`);
  }
  host.terminal.err('Stop with Ctrl-C.\n');
}

/**
 * Runs one piece of work, which must not fail, at a time; however often it is asked for meanwhile, it runs once more
 * afterwards. Resolves when work that began after the call has ended.
 */
export function repeatable(work: () => Promise<void>): () => Promise<void> {
  let isAsked = false;
  let running: Promise<void> | undefined;
  const run = async (): Promise<void> => {
    while (isAsked) {
      isAsked = false;
      await work();
    }
    running = undefined;
  };
  return () => {
    isAsked = true;
    return (running ??= run());
  };
}
