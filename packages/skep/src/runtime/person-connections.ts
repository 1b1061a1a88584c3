import { isAbsolute } from 'node:path';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import type { RuntimeEnvironment } from './environment.ts';

/**
 * How the person of this environment reaches others: private addresses too, through the proxies and by the authorities
 * that its variables name, and by those of `ca` (PEM) besides. Fails with `fetch/ca-bundle` or `file/*`.
 */
export async function personConnections(env: RuntimeEnvironment['env'], ca: readonly string[] = []) {
  const variable = (name: string): string => env[name] ?? env[name.toUpperCase()] ?? '';
  const bundle = env['SSL_CERT_FILE'];
  const named = bundle !== undefined && isAbsolute(bundle) ? await readCaBundle(bundle) : [];
  return {
    allowPrivate: true,
    ca: [...ca, ...named],
    httpProxy: variable('http_proxy'),
    httpsProxy: variable('https_proxy'),
    noProxy: variable('no_proxy'),
  };
}
