import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { saidBy, statusOf } from '@skep/core/fetch/client.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { namesIn } from '../account/account.ts';
import type { RegistryRequest, RegistryServer } from '../account/ask-registry.ts';
import { registryUrl, shownServer, type RegistryAddress } from '../account/registry-address.ts';
import type { Publication } from './document.ts';
import { storedVersion } from './stored-version.ts';

/** Claims as a registry takes them. */
export type PublishClaims = Readonly<Record<string, string | readonly string[]>>;

/** Where something is published, and who is asked. */
export interface Door {
  readonly address: RegistryAddress;
  readonly registry: RegistryServer;
  readonly signal: AbortSignal;
  /** Fails with the signal's reason. */
  readonly pause: (ms: number) => Promise<void>;
}

export type EntryStatus = 'active' | 'deprecated' | 'deleted';

/**
 * Publishes at the door of the registry that the address names, else at that of the whole server; other registries than
 * Skep's have only the former, at the address itself. Resolves to where it went, for people. Fails as `decisionAt` where there
 * are claims, as `RegistryServer.ask`, with `publish/refused` in the registry's own words, and with `publish/unconfirmed`.
 */
export async function publishAt(
  door: Door,
  publication: Publication,
  claims: PublishClaims | undefined,
): Promise<string> {
  if (claims !== undefined) await decisionAt(door, publication, claims);
  const { server, name } = door.address;
  const wrapped = wrappedBody(publication, claims);
  // The form that every registry of the official API understands.
  const plain = publication.kind === 'server' && claims === undefined ? publication.text : wrapped;
  const request =
    name === undefined && (await isOfSkep(door))
      ? ({ method: 'POST', url: `${server}/v1/entries`, body: wrapped } as const)
      : ({ method: 'POST', url: `${apiOf(door.address)}/v0.1/publish`, body: plain } as const);
  await sendOrCompare(door, request, { ...publication, claims });
  return name === undefined ? shownServer(server) : `${name} at ${shownServer(server)}`;
}

/** Whether a server lists registries, as those of Skep do. Fails where it wants to know who asks, and as it does while it is away. */
async function isOfSkep({ address, registry, signal }: Door): Promise<boolean> {
  try {
    return namesIn(await registry.ask({ url: `${address.server}/v1/registries`, signal })) !== undefined;
  } catch (error) {
    if (hasNoEndpoint(error) || hasCode(error, 'access/forbidden')) return false;
    throw error;
  }
}

/** A registry that is being restarted may be there again. */
const PAUSE_MS = 1_000;

/**
 * An answer that was lost leaves open whether it was published, so it is sent once more (decision 0365). Whoever has the version
 * then says so; it was the first try where what is stored is the same. All else that comes of the second leaves it open.
 */
async function sendOrCompare(
  door: Door,
  request: Omit<RegistryRequest, 'signal'>,
  publication: Publication & { readonly claims: PublishClaims | undefined },
): Promise<void> {
  const lost = await unlessLost(ask(door, request));
  if (lost === undefined) return;
  const { registry, signal, address, pause } = door;
  await pause(PAUSE_MS);
  try {
    await ask(door, request);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof SkepError)) throw error;
    const { code, message } = error;
    const stored = isConflict(error)
      ? await storedVersion(registry, apiOf(address), publication, signal)
      : 'unknown';
    if (stored === 'same') return;
    if (stored === 'other') throw error;
    const again = code === lost.code ? '' : `; asked again: ${message}`;
    throw new SkepError(lost.code, { message: lost.message + again, cause: error });
  }
}

/** The failure that leaves open whether it was done. Fails as `sent` with any other. */
async function unlessLost(sent: Promise<unknown>): Promise<SkepError | undefined> {
  try {
    await sent;
    return undefined;
  } catch (error) {
    if (hasCode(error, 'publish/unconfirmed')) return error;
    throw error;
  }
}

/** The body that doors of Skep's registries take for every kind; the document stands in it byte for byte. */
function wrappedBody({ kind, text }: Publication, claims: PublishClaims | undefined): string {
  return `{"${kind}":${text}${claims === undefined ? '' : `,"claims":${JSON.stringify(claims)}`}}`;
}

/**
 * What a registry of Skep would decide about `publishAt`, which stores nothing; undefined where the registry is another one.
 * Fails as `publishAt`, with `publish/claims-ignored` where claims are given that it would not enforce, and with
 * `registry/not-found` where nothing answers as a registry.
 */
export async function decisionAt(
  door: Door,
  publication: Publication,
  claims: PublishClaims | undefined,
): Promise<unknown> {
  const { registry, signal, address } = door;
  const { server, name } = address;
  const query = name === undefined ? '' : `?registry=${encodeURIComponent(name)}`;
  const body = wrappedBody(publication, claims);
  const url = `${server}/v1/explain${query}`;
  const report = await registry.ask({ method: 'POST', url, body, signal }).catch((error: unknown) => {
    if (!hasNoEndpoint(error)) throw asRefusal(error, server, { absent: PUBLISH_STEPS.absent });
  });
  if (report === undefined) await requireRegistry(door);
  const mode = isRecord(report) ? report['mode'] : undefined;
  if (claims === undefined || mode === 'full') return report;
  throw new SkepError('publish/claims-ignored', {
    message: `${shownServer(server)} ${
      mode === undefined
        ? 'does not say that it enforces claims, so others may see it too'
        : 'enforces no claims, so others would see it too'
    }`,
  });
}

async function requireRegistry({ registry, signal, address }: Door): Promise<void> {
  const api = apiOf(address);
  try {
    await registry.ask({ url: `${api}/v0.1/servers?limit=1`, signal });
  } catch (error) {
    if (!hasNoEndpoint(error)) throw error;
    throw new SkepError('registry/not-found', {
      message: `there is no registry at ${shownServer(api)}`,
      hint: 'check its address; skep whoami lists the registries that are there',
      cause: error,
    });
  }
}

/** True where an address does not know what it is asked. */
export function hasNoEndpoint(error: unknown): boolean {
  return [404, 405, 501].includes(statusOf(error) ?? 0) || hasCode(error, 'fetch/not-json');
}

/** Deletes one version. Fails as `publishAt`. */
export async function deleteAt(door: Door, entry: { name: string; version: string }): Promise<void> {
  const path = `${encodeURIComponent(entry.name)}/versions/${encodeURIComponent(entry.version)}`;
  const { server, name } = door.address;
  const url =
    name === undefined
      ? `${server}/v1/entries/server/${path}`
      : `${apiOf(door.address)}/v0.1/servers/${path}`;
  await ask(door, { method: 'DELETE', url }, ENTRY_STEPS);
}

/** Says what one version is, or all where none is named. Fails as `publishAt`. */
export async function markAt(
  door: Door,
  entry: { readonly name: string; readonly version?: string | undefined },
  mark: { readonly status: EntryStatus; readonly statusMessage?: string | undefined },
): Promise<void> {
  const version = entry.version === undefined ? '' : `/versions/${encodeURIComponent(entry.version)}`;
  const url = `${apiOf(door.address)}/v0/servers/${encodeURIComponent(entry.name)}${version}/status`;
  await ask(door, { method: 'PATCH', url, body: JSON.stringify(mark) }, ENTRY_STEPS);
}

function apiOf({ server, name }: RegistryAddress): string {
  return name === undefined ? server : registryUrl(server, name);
}

/** What to do about a refusal of the service, by what it means. */
interface NextSteps {
  readonly absent: string;
  readonly forbidden?: string;
}

const PUBLISH_STEPS: NextSteps = {
  absent: 'check the address of the registry; skep whoami lists the registries that are there',
  forbidden: 'skep publish --dry-run says what you lack; skep whoami says who you are there',
};
const ENTRY_STEPS: NextSteps = {
  absent: 'check name and version with skep info, and the registry with skep whoami',
};

async function ask(
  { registry, signal }: Door,
  request: Omit<RegistryRequest, 'signal'>,
  next: NextSteps = PUBLISH_STEPS,
): Promise<unknown> {
  try {
    return await registry.ask({ ...request, signal });
  } catch (error) {
    if (mayBeDone(error)) throw unconfirmed(error, registry.server);
    // Who has shown nothing is told to sign in.
    const { absent } = next;
    throw asRefusal(error, registry.server, registry.proof === 'nothing' ? { absent } : next);
  }
}

/** Failures of a connection that stood: the request may have arrived, and only its answer got lost. */
const BROKEN: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE']);
const LOST = ['fetch/timeout', 'fetch/not-json', 'fetch/too-large'] as const;

function mayBeDone(error: unknown): error is SkepError {
  if (hasCode(error, 'fetch/unreachable')) return BROKEN.has(error.detail['errno']);
  return [502, 504].includes(statusOf(error) ?? 0) || LOST.some((code) => hasCode(error, code));
}

function unconfirmed(cause: SkepError, server: string): SkepError {
  return new SkepError('publish/unconfirmed', {
    message: `${shownServer(server)} did not confirm it, and may have done it: ${cause.message}`,
    cause,
  });
}

/** The registry's own words about what was sent; what it says about who sends is explained already. */
function asRefusal(error: unknown, server: string, { absent, forbidden }: NextSteps): unknown {
  if (hasCode(error, 'access/forbidden') && forbidden !== undefined)
    return new SkepError(error.code, {
      message: error.message,
      hint: forbidden,
      detail: error.detail,
      cause: error,
    });
  const status = statusOf(error);
  if (status === undefined || ![400, 404, 405, 409, 413, 422, 501].includes(status)) return error;
  const said = saidBy(error) ?? `it answered with status ${status}`;
  return new SkepError('publish/refused', {
    message: `${shownServer(server)} does not take it: ${said}`,
    detail: { status },
    cause: error,
    ...(hasNoEndpoint(error) && { hint: absent }),
  });
}

/** True for a version that the registry has already, in the words of Skep's registries or of the official one. */
export function isVersionTaken(error: unknown): error is SkepError {
  return hasCode(error, 'publish/refused') && /version already exists|duplicate version/i.test(error.message);
}

function isConflict(error: unknown): boolean {
  return hasCode(error, 'publish/refused') && error.detail['status'] === 409;
}
