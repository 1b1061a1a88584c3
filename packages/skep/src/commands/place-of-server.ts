import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { isLoopback } from '@skep/core/fetch/loopback.ts';
import type { Context } from '../cli/context.ts';
import { ensureHosted } from '../cli/ensure-hosted.ts';
import { findRunConfig } from '../run-config/file.ts';
import { shouldRun } from '../supervisor/state.ts';
import { viewWorkload } from '../workloads/view.ts';

/** Where a server answers its clients. */
export interface Place {
  readonly url: URL;
  readonly kind: 'http' | 'sse';
}

/**
 * Where the server answers that `target` names, a workload or a URL. Fails with `workload/not-found`, `run/ended` for a workload
 * that does not run, `usage/conflict` for one whose clients sign in where there is no token, and for a token that would leave
 * this machine unencrypted.
 */
export async function placeOfServer(
  target: string,
  token: string | undefined,
  context: Context,
): Promise<Place> {
  if (!/^https?:/iu.test(target)) return placeOfWorkload(target, token, context);
  const place = placeOf(target);
  const { url } = place;
  if (token === undefined || url.protocol === 'https:' || isLoopback(url.hostname)) return place;
  throw new SkepError('usage/conflict', {
    message: `the token would travel to "${printable(url.host)}" unencrypted`,
    hint: 'give an https URL',
  });
}

function placeOf(text: string): Place {
  const url = URL.parse(text);
  if (url === null)
    throw new SkepError('usage/invalid-value', {
      message: `"${printable(text)}" is no URL`,
      hint: 'give the endpoint, such as http://127.0.0.1:4001/mcp, or the name of a workload',
    });
  return { url, kind: url.pathname.endsWith('/sse') ? 'sse' : 'http' };
}

async function placeOfWorkload(name: string, token: string | undefined, context: Context): Promise<Place> {
  await ensureHosted(context);
  const view = await viewWorkload(name, context);
  if (view.status === 'unknown' || !shouldRun(view.status))
    throw new SkepError('run/ended', {
      message: `"${name}" is ${view.status}`,
      hint: `start it with skep start ${name}`,
    });
  const signsIn = (await findRunConfig(context.places, name))?.oidc_config !== undefined;
  if (signsIn && token === undefined)
    throw new SkepError('usage/conflict', {
      message: `clients of "${name}" sign in`,
      hint: 'give a token for it with --token-file FILE',
    });
  return { url: new URL(view.url), kind: view.proxyMode === 'sse' ? 'sse' : 'http' };
}
