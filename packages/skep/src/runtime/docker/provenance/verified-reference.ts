import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { RuntimeEnvironment } from '../../environment.ts';
import { personConnections } from '../../person-connections.ts';
import type { PrepareRequest } from '../../runtime.ts';
import type { EngineClient } from '../client.ts';
import type { CredentialSources } from '../credentials.ts';
import { isMoving, parseImageReference } from '../image-reference.ts';
import { verifyImage } from './verify-image.ts';

/** What is to be run, and why its origin is in doubt, where it is. */
export interface Chosen {
  readonly reference: string;
  readonly doubt?: string;
}

interface Asking {
  readonly client: EngineClient;
  readonly environment: RuntimeEnvironment;
  readonly credentials: CredentialSources;
  readonly request: Pick<PrepareRequest, 'verification' | 'report' | 'signal'>;
}

/**
 * The image that was verified, by its digest; or where failing does not matter (`warn`) what was looked at, by its digest
 * as far as that is known, with what is in doubt; or the reference as it is, where nothing is to be verified. Fails with `runtime/unverified` where it does.
 */
export async function verifiedReference(
  reference: string,
  { client, environment, credentials, request }: Asking,
): Promise<Chosen> {
  const { verification, report, signal } = request;
  if (verification?.expected === undefined) return { reference };
  const { expected, required, trustedRoot } = verification;
  let looked = reference;
  try {
    const verified = await verifyImage({
      reference,
      expected,
      trustedRoot,
      localDigest: await localDigest(reference, client),
      credentials,
      connections: await personConnections(environment.env),
      cacheDir: environment.cacheDir,
      now: Date.now(),
      resolved: (pinned) => void (looked = pinned),
      report,
      signal,
    });
    return { reference: verified };
  } catch (error) {
    const isDoubt = error instanceof SkepError && /^(?:fetch\/|file\/|runtime\/unverified$)/.test(error.code);
    if (required || !isDoubt) throw error;
    signal.throwIfAborted();
    return { reference: looked, doubt: error.message };
  }
}

/** Digest of the engine's own copy, where that is what a run would take. */
async function localDigest(reference: string, client: EngineClient): Promise<string | undefined> {
  const parsed = parseImageReference(reference);
  if (isMoving(parsed)) return undefined;
  const { status, body } = await client.ask('inspect image', { path: `/images/${reference}/json` }, 404);
  const digests = status === 200 && isRecord(body) ? body['RepoDigests'] : undefined;
  const own = (Array.isArray(digests) ? (digests as unknown[]) : []).find(
    (text) =>
      typeof text === 'string' && familiar(text.split('@', 1)[0] ?? '') === familiar(parsed.repository),
  );
  return typeof own === 'string' ? own.slice(own.indexOf('@') + 1) : undefined;
}

/** How engines shorten names of Docker Hub. */
const familiar = (repository: string): string =>
  repository.replace(/^(?:index\.)?docker\.io\//, '').replace(/^library\//, '');
