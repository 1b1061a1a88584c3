import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Report } from '../runtime.ts';
import type { EngineAnswer, EngineClient } from './client.ts';
import { findLogin, registryAuth, type CredentialSources } from './credentials.ts';
import { ENGINE_FULL, engineMessage, FREE_ENGINE_DISK } from './failure.ts';
import { isMoving, parseImageReference, type ImageReference } from './image-reference.ts';
import { findImage } from './images.ts';
import type { ObservedImage } from './observed.ts';
import { progressError, progressLine, PullProgress } from './progress.ts';

export interface PullRequest {
  readonly reference: string;
  /** Which of the images behind the reference, as `linux/arm64`; the engine's own where it is absent. */
  readonly platform?: string | undefined;
  readonly credentials: CredentialSources;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Makes an image available (docs/behaviour/run.md#image-pulls): a moving tag is pulled first and the local copy is the
 * fallback; any other reference is pulled only when it is missing, or is there for another platform than the one that is asked
 * for. Throws `runtime/image-not-found`.
 */
export async function ensureImage(client: EngineClient, request: PullRequest): Promise<ObservedImage> {
  const parsed = parseImageReference(request.reference);
  const local = await findImage(client, request.reference, request.signal);
  const fits = local !== undefined && isFor(local, request.platform);
  if (fits && !isMoving(parsed)) return local;
  request.report.step(`Pulling ${request.reference}`);
  try {
    await pull(client, parsed, request);
  } catch (error) {
    if (!fits || !hasCode(error, 'runtime/image-not-found')) throw error;
    request.report.detail(`${error.message}; using the local copy`);
    return local;
  }
  const pulled = await findImage(client, request.reference, request.signal);
  if (!pulled) throw notFound(request.reference, 'the engine pulled it and does not have it');
  request.report.step(`Successfully pulled ${request.reference}`);
  return pulled;
}

/** True where no platform is asked for, or the image is for that one; its variant is the registry's to choose. */
function isFor({ os, architecture }: ObservedImage, platform: string | undefined): boolean {
  const [wantedOs, wanted] = (platform ?? '').split('/');
  return !platform || (os === wantedOs && (wanted === undefined || architecture === wanted));
}

async function pull(client: EngineClient, parsed: ImageReference, request: PullRequest): Promise<void> {
  const { login, note } = await findLogin(parsed.host, request.credentials);
  if (note !== undefined) request.report.detail(note);
  const pulling = {
    method: 'POST',
    path: '/images/create',
    // Without a tag the engine would pull all of them.
    query: {
      fromImage: parsed.repository,
      tag: parsed.digest ?? parsed.tag ?? 'latest',
      ...(request.platform ? { platform: request.platform } : {}),
    },
    ...(login && { headers: { 'x-registry-auth': registryAuth(parsed.host, login) } }),
    signal: request.signal,
  } as const;
  const refusal = ({ body }: EngineAnswer) => notFound(request.reference, engineMessage(body));
  const progress = new PullProgress();
  for await (const value of client.lines(pulling, refusal)) {
    const line = progressLine(value);
    const failure = progressError(line);
    if (failure !== undefined) throw notFound(request.reference, failure);
    const text = progress.take(line);
    if (text !== undefined) request.report.detail(text);
  }
}

/** What engines (their HTTP client is Go's) say of a registry that they cannot talk to at all. */
const UNREACHED = /\bdial tcp\b|no such host|Client\.Timeout|i\/o timeout|TLS handshake|x509:|proxyconnect/;

function notFound(reference: string, reason: string): SkepError {
  if (ENGINE_FULL.test(reason)) {
    const message = `image "${reference}" could not be pulled: the disk of the container engine is full (${reason})`;
    return new SkepError('runtime/image-not-found', { message, hint: FREE_ENGINE_DISK });
  }
  return new SkepError('runtime/image-not-found', {
    message: `image not found in registry: "${reference}" (${reason})`,
    ...(UNREACHED.test(reason)
      ? {
          hint: 'the engine cannot reach that registry: check its name, the network, and the proxy of the engine',
          detail: { unreached: true },
        }
      : {}),
  });
}
