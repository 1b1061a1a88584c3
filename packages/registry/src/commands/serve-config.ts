import type { Log } from '@skep/core/log/log.ts';
import type { App } from '../server/app.ts';
import type { Loaded } from '../config/load.ts';
import type { Override } from '../config/overrides.ts';
import { unavailable } from '../sources/source-body.ts';
import type { Host } from '../host.ts';
import { startWarnings } from '../server/start-warnings.ts';
import { loadFrom } from './load-from.ts';

/** The flags of `serve` that decide about its configuration. */
export interface ConfigFlags {
  readonly config: string;
  readonly authMode?: string | undefined;
}

/**
 * The configuration as `serve` uses it, at start and at every reload. Fails as `loadConfig` does, and with
 * `source/not-available` for what is valid and this version does not have.
 */
export async function loadServed(host: Host, { config, authMode }: ConfigFlags): Promise<Loaded> {
  const loaded = await loadFrom(host, config, flagOverrides(authMode));
  const [missing] = 'config' in loaded ? unavailable(loaded.config.sources) : [];
  if (missing !== undefined) throw missing;
  return loaded;
}

/** Reads the configuration again (SIGHUP). What cannot be used is one line in the log, and the old one goes on. */
export async function reload(
  host: Host,
  { config, authMode }: { readonly [Flag in keyof ConfigFlags]?: ConfigFlags[Flag] | undefined },
  { app, log, stop }: { readonly app: App; readonly log: Log; readonly stop: AbortSignal },
): Promise<void> {
  if (config === undefined) return;
  try {
    const loaded = await loadServed(host, { config, authMode });
    if ('problems' in loaded) {
      log.error(
        { problems: loaded.problems },
        'the new configuration is not valid; the old one stays in use',
      );
      return;
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
    if (stop.aborted) return;
    log.error({ err }, 'the new configuration cannot be used; the old one stays in use');
  }
}

function flagOverrides(authMode: string | undefined): Override[] {
  return authMode === undefined ? [] : [{ path: ['auth', 'mode'], value: authMode, from: '--auth-mode' }];
}
