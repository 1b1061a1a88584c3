import { canonicalClaims } from '@skep/auth/claims/same.ts';
import type { Entry } from '@skep/core/catalog/entry.ts';
import { officialText } from '../../../engine/kinds.ts';
import { decidePublish } from '../../../access/publish-rules.ts';
import { exactClaims, storedClaims } from '../../../access/claim-set.ts';
import { identityOf, type NamedRegistry, type StoredSource } from '../../../store/rows.ts';
import type { PublishedVersion, PublishFacts, PublishRequest } from '../../../store/decisions.ts';
import type { AdminCall } from '../admin-route.ts';
import { enforceWith, type RefusalWords } from '../../../access/decision.ts';
import type { Payload } from './payload.ts';

/** Where a door publishes to. */
export interface Target {
  /** The door is one of this registry. */
  readonly registry?: string;
  /** Whether the managed source is one that this door reaches; refuses who may not use the door. */
  readonly accepts: (managed: Pick<StoredSource, 'name'>, registry: NamedRegistry | undefined) => boolean;
  /** Said where there is none. */
  readonly missing: string;
}

/**
 * Publishes one version: the decision falls inside the transaction that writes, and the answer is given when reads of
 * this process see it. Fails with the codes of `decidePublish`.
 */
export async function publishEntry(
  call: AdminCall,
  payload: Payload,
  target: Target,
): Promise<PublishedVersion> {
  const named = storeRequest(payload, target);
  const request = { ...named, limits: call.limits, seemsNew: !call.serves(identityOf(named)) };
  const words = wordsFor(payload.entry, target);
  const { revision, value } = await call.store.publish(request, (facts) => {
    const decision = decidePublish(call.authority, {
      claims: payload.claims,
      target: reached(facts, target),
      entry: existing(facts, request.version.version),
    });
    enforceWith(decision, words);
  });
  await call.applied(revision);
  return value;
}

function storeRequest({ entry, claims }: Payload, { registry }: Target): PublishRequest {
  return {
    ...(registry === undefined ? {} : { registry }),
    kind: entry.kind,
    namespace: namespaceOf(entry),
    name: entry.name,
    claims: canonicalClaims(claims),
    version: {
      version: entry.version,
      title: entry.document.title ?? null,
      description: entry.document.description,
      document: entry.json,
      official: officialText(entry),
    },
  };
}

function reached({ target: managed, registry }: PublishFacts, { accepts }: Target) {
  return managed === undefined || !accepts(managed, registry)
    ? undefined
    : { claims: storedClaims(managed.claims) };
}

function existing({ entry }: PublishFacts, version: string) {
  if (entry === undefined) return undefined;
  return { claims: exactClaims(entry.claims), hasVersion: entry.versions.includes(version) };
}

function wordsFor(entry: Entry, { missing }: Target): RefusalWords {
  const namespace = namespaceOf(entry);
  const name = namespace === '' ? entry.name : `${namespace}/${entry.name}`;
  return {
    'version-taken': `version already exists: ${name}@${entry.version}`,
    'no-managed-source': missing,
  };
}

/** Namespace within the store; a server's is part of its name. */
function namespaceOf(entry: Entry): string {
  return entry.kind === 'server' ? '' : entry.namespace;
}
