import { hasCode } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { statusOf } from '@skep/core/fetch/client.ts';
import type { Door, PublishClaims } from './registry-doors.ts';

/** What publishing would come to, as far as the registry tells without taking anything. */
export interface PublishOutlook {
  /** Who would see it, in words. */
  readonly seenBy: string;
  /** Why the registry would refuse the person; absent where it would not. */
  readonly refusal?: string;
  /** Who one is there; absent where nobody is asked. */
  readonly subject?: string;
}

/**
 * Asks a registry of Skep what it makes of the caller (`GET /v1/explain`) and which claims its gate asks for; undefined for
 * any other registry. Fails as `RegistryServer.ask`.
 */
export async function outlookAt(
  { address, registry, signal }: Door,
  claims: PublishClaims | undefined,
): Promise<PublishOutlook | undefined> {
  const { server, name } = address;
  const query = name === undefined ? '' : `?registry=${encodeURIComponent(name)}`;
  const report = await registry.ask({ url: `${server}/v1/explain${query}`, signal }).catch(unlessAbsent);
  if (!isRecord(report)) return undefined;
  const gate =
    name === undefined
      ? undefined
      : await registry
          .ask({ url: `${server}/v1/registries/${encodeURIComponent(name)}`, signal })
          .catch(unlessAbsent);
  const { mode, caller, findings } = report;
  const subject = isRecord(caller) && typeof caller['subject'] === 'string' ? caller['subject'] : '';
  const refusal = refusalIn(findings);
  return {
    seenBy: seenBy(mode, claims, isRecord(gate) ? gate['claims'] : undefined),
    ...(subject === '' ? {} : { subject }),
    ...(refusal === undefined ? {} : { refusal }),
  };
}

function unlessAbsent(error: unknown): undefined {
  const status = statusOf(error) ?? 500;
  if ([400, 404, 405].includes(status) || hasCode(error, 'fetch/not-json')) return;
  throw error;
}

/** The role to publish with and the gate must both be passed. */
function refusalIn(findings: unknown): string | undefined {
  const all = Array.isArray(findings) ? findings.filter(isRecord) : [];
  const refused = all.find(
    ({ layer, subject, allowed }) =>
      allowed === false && (layer === 'registry' || (layer === 'role' && subject === 'manageEntries')),
  );
  if (refused === undefined) return undefined;
  const { layer, subject, because } = refused;
  return layer === 'role'
    ? `you lack the role ${String(subject)}: ${String(because)}`
    : `you do not pass the gate of ${String(subject)}: ${String(because)}`;
}

function seenBy(mode: unknown, claims: PublishClaims | undefined, gate: unknown): string {
  if (mode === 'anonymous') return 'everyone';
  if (mode === 'auth-only') return 'everyone who is signed in';
  const own = Object.entries(claims ?? {});
  if (own.length === 0) return 'super-admins only, because it has no claims; give them with --claim';
  const needed = [...Object.entries(isRecord(gate) ? gate : {}), ...own];
  return `super-admins, and who holds ${[...new Set(needed.map(shownClaim))].join(' and ')}`;
}

function shownClaim([name, value]: readonly [string, unknown]): string {
  const values = (Array.isArray(value) ? value : [value]).map(String);
  return values.length === 0 ? name : values.map((one) => `${name}=${one}`).join(' and ');
}
