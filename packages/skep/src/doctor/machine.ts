import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { ok, type Finding, type Inquiry } from './check.ts';

const MIB = 1024 * 1024;
const BROKEN_BELOW = 8 * MIB;
const WARNED_BELOW = 512 * MIB;
const DAY_MS = 86_400_000;

/** Whether the program that supervisors are started with is still where it was. */
export async function lookAtProgram({ context }: Inquiry): Promise<Finding> {
  const { node, entry, version } = context.program;
  for (const [path, mode] of [
    [node, constants.X_OK],
    [entry, constants.R_OK],
  ] as const) {
    const there = await access(path, mode).then(
      () => true,
      () => false,
    );
    if (!there) return { verdict: 'broken', text: `"${path}" is gone or may not be used` };
  }
  return ok(`Skep ${version} with Node at ${node}`);
}

export async function lookAtDisk({ context: { places } }: Inquiry): Promise<Finding> {
  const free: { readonly path: string; readonly bytes: number }[] = [];
  for (const directory of new Set([places.stateDir, places.dataDir, places.cacheDir])) {
    const path = await nearest(directory);
    const { bavail, bsize, files, ffree } = await statfs(path);
    if (files > 0 && ffree === 0) return { verdict: 'broken', text: `no file can be made below "${path}"` };
    free.push({ path, bytes: bavail * bsize });
  }
  const [least] = free.toSorted((a, b) => a.bytes - b.bytes);
  if (least === undefined) return ok('not looked at');
  const text = `${Math.floor(least.bytes / MIB)} MiB free for "${least.path}"`;
  if (least.bytes < BROKEN_BELOW) return { verdict: 'broken', text };
  return least.bytes < WARNED_BELOW ? { verdict: 'warning', text } : ok(text);
}

/** The directory, or the first above it that is there. */
async function nearest(directory: string): Promise<string> {
  for (let path = directory; ; path = dirname(path)) {
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined || dirname(path) === path) return path;
  }
}

/** A clock that is behind makes certificates not valid yet, and ages of servers wrong. */
export async function lookAtClock({ context: { clock, program } }: Inquiry): Promise<Finding> {
  const now = new Date(clock.now());
  const installed = await stat(program.entry).catch(() => undefined);
  if (installed === undefined || now.getTime() > installed.mtimeMs - DAY_MS) return ok(now.toISOString());
  return { verdict: 'broken', text: `it says ${now.toISOString()}, before this Skep was installed` };
}

export async function lookAtConfiguration({ context: { places, env } }: Inquiry): Promise<Finding> {
  try {
    await loadAppConfig(places, env);
    return ok(places.configFile);
  } catch (error) {
    return broken(error);
  }
}

/** The extra authorities that downloads, registries and servers are checked with. */
export async function lookAtCertificates({ context }: Inquiry): Promise<Finding | undefined> {
  const { env, places } = context;
  // A broken configuration file is told by its own check.
  const config = await loadAppConfig(places).catch(() => undefined);
  const files: readonly (readonly [string, string | undefined])[] = [
    ['SSL_CERT_FILE', env['SSL_CERT_FILE']],
    ['NODE_EXTRA_CA_CERTS', env['NODE_EXTRA_CA_CERTS']],
    ['ca_certificate_path', config?.caCertificatePath],
  ];
  const named = files.flatMap(([name, path]) => (path ? [{ name, path }] : []));
  for (const { name, path } of named) {
    try {
      await readCaBundle(path);
    } catch (error) {
      if (!(error instanceof SkepError)) throw error;
      return { verdict: 'broken', text: `${name}: ${error.message}` };
    }
  }
  return named.length === 0 ? undefined : ok(named.map(({ name, path }) => `${name} at ${path}`).join(', '));
}

const PROXIES = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'].flatMap((name) => [name, name.toLowerCase()]);

/** Whatever leads past a proxy or into one has no user name or password in what is said of it. */
export async function lookAtProxies({ context: { env } }: Inquiry): Promise<Finding | undefined> {
  const named = PROXIES.flatMap((name) => (env[name] ? [{ name, url: URL.parse(env[name] ?? '') }] : []));
  for (const { name, url } of named) {
    if (url === null || !['http:', 'https:'].includes(url.protocol) || url.hostname === '')
      return { verdict: 'broken', text: `${name} is no http or https address` };
  }
  if (named.length === 0) return undefined;
  return ok(named.map(({ name, url }) => `${name} is ${url?.host}`).join(', '));
}

/** What a failure says of itself. */
export function broken(error: unknown): Finding {
  if (!(error instanceof SkepError)) throw error;
  return { verdict: 'broken', text: error.message, ...(error.hint ? { remedy: error.hint } : {}) };
}
