import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { withLock } from '@skep/core/files/lock.ts';
import type { Places } from '@skep/core/files/places.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import type { SecretsProvider } from './provider.ts';

/** Where all secrets lie as one text. */
export interface DocumentPlace {
  readonly kind: SecretsProvider['kind'];
  /** For people. */
  readonly name: string;
  /** Undefined where nothing was ever stored. */
  read(): Promise<Buffer | undefined>;
  /** Replaces it whole, or leaves it as it is. */
  write(text: Buffer): Promise<void>;
}

/** Another command that stores a secret may be waiting for a password. */
const LOCK_MS = 30_000;

/** Secrets that lie as one JSON text in a place; changes come one after the other, whatever process makes them. */
export function documentProvider(
  place: DocumentPlace,
  { places, signal }: { readonly places: Places; readonly signal: AbortSignal },
): Required<SecretsProvider> {
  const read = async (): Promise<Map<string, string>> => secretsIn(await place.read(), place.name);
  return {
    kind: place.kind,
    get: async (name) => (await read()).get(name),
    list: async () => [...(await read()).keys()].toSorted().map((name) => ({ name })),
    async change(change) {
      const lock = join(places.secretLocksDir, 'secrets.lock');
      await withLock(lock, { waitMs: LOCK_MS, what: 'the secrets', signal }, async () => {
        const secrets = await read();
        change(secrets);
        await place.write(
          Buffer.from(`${JSON.stringify({ secrets: Object.fromEntries(secrets) })}\n`, 'utf8'),
        );
      });
    },
  };
}

function secretsIn(text: Buffer | undefined, where: string): Map<string, string> {
  if (text === undefined || text.length === 0) return new Map();
  const document = parsedJson(text.toString('utf8'));
  const secrets = isRecord(document) ? document['secrets'] : undefined;
  if (!isRecord(secrets)) throw new SkepError('secrets/damaged', { message: `${where} holds no secrets` });
  return new Map(
    Object.entries(secrets).map(([name, value]) => {
      if (typeof value === 'string') return [name, value];
      throw new SkepError('secrets/damaged', { message: `${where} holds something that is no secret` });
    }),
  );
}
