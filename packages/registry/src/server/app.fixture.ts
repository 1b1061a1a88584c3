import { tmpdir } from 'node:os';
import { ActiveSpan } from '@skep/core/telemetry/active-span.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import type { Log } from '@skep/core/log/log.ts';
import { ANONYMOUS_AUTH } from '../api/api.fixture.ts';
import { buildInfo } from '../config/build-info.ts';
import type { RegistryConfig } from '../config/load.ts';
import { DEFAULT_LIMITS } from '../shape/limits.ts';
import type { NamedSource } from '../store/rows.ts';
import { IN_MEMORY } from '../store/sqlite/private-file.ts';
import { ingest } from '../sync/ingest.ts';
import type { AppOptions } from './app-options.ts';

// A registry over a store in memory, on ports that the system chooses, for the tests of this folder.

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: object;
}

/** A log whose lines a test can look at. */
export function recordedLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, message, fields });
  const log: Log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  };
  return { log, lines };
}

/** A source that holds servers of these names itself. */
export function inlineSource(name: string, servers: readonly string[]): NamedSource {
  const data = JSON.stringify(
    servers.map((server) => ({ name: server, version: '1.0.0', description: `Serves ${server}` })),
  );
  const config = JSON.stringify({ data });
  return { name, kind: 'file', config, format: null, filter: null, interval: 3_600_000, claims: '' };
}

export function configWith(changes: Partial<RegistryConfig> = {}): RegistryConfig {
  return {
    path: '/registry.yaml',
    storage: { path: IN_MEMORY },
    sources: [inlineSource('main', ['acme/weather'])],
    registries: [{ name: 'all', sources: ['main'], claims: '' }],
    limits: DEFAULT_LIMITS,
    telemetry: 'off',
    audit: 'off',
    auth: ANONYMOUS_AUTH,
    ...changes,
  } as RegistryConfig;
}

export function appOptions(changes: Partial<AppOptions> = {}): AppOptions {
  let ids = 0;
  const anyPort = { host: '127.0.0.1', port: 0 };
  return {
    config: configWith(),
    storePlace: { kind: 'sqlite', path: IN_MEMORY },
    addresses: { public: anyPort, internal: anyPort, isChosen: true },
    build: buildInfo({ nodeVersion: 'v24.0.0', platform: 'linux', arch: 'x64' }),
    log: recordedLog().log,
    requestLog: 'all',
    compress: true,
    active: new ActiveSpan(),
    stdout: { write: () => true },
    env: {},
    tempDir: tmpdir(),
    ingest: (input) => Promise.resolve(ingest(input)),
    clock: systemClock,
    random: () => 0.5,
    randomId: () => `id-${(ids += 1)}`,
    releaseMemory: () => undefined,
    stop: new AbortController().signal,
    ...changes,
  };
}
