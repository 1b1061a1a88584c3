import { isRecord } from '@skep/core/json/is-record.ts';
import type { Publication } from './document.ts';
import { decisionAt, hasNoEndpoint, type Door, type PublishClaims } from './registry-doors.ts';

/** What publishing would come to, in the words of the registry. */
export interface PublishOutlook {
  /** Who would see it, in words. */
  readonly seenBy: string;
  /** Why the registry would refuse the person; absent where it would not. */
  readonly refusal?: string;
  /** Who one is there; absent where nobody is asked. */
  readonly subject?: string;
}

/**
 * Has a registry of Skep decide about a publish without storing it (`POST /v1/explain`), and asks which claims its gate asks
 * for; undefined for any other registry. Fails as `decisionAt`.
 */
export async function outlookAt(
  door: Door,
  publication: Publication,
  claims: PublishClaims | undefined,
): Promise<PublishOutlook | undefined> {
  const report = await decisionAt(door, publication, claims);
  const { mode, caller, findings, arrayMatch } = isRecord(report) ? report : {};
  const decided = (Array.isArray(findings) ? findings : []).filter(isRecord);
  const decision = decided.find(({ layer }) => layer === 'publish');
  if (decision === undefined) return undefined;
  const subject = isRecord(caller) && typeof caller['subject'] === 'string' ? caller['subject'] : '';
  const match = arrayMatch === 'any' ? ' or ' : ' and ';
  return {
    seenBy: seenBy(mode, [...(await gateOf(door)), ...Object.entries(claims ?? {})], { claims, match }),
    ...(subject === '' ? {} : { subject }),
    ...(decision['allowed'] === true ? {} : { refusal: refusalIn(decision, decided) }),
  };
}

async function gateOf({ address, registry, signal }: Door): Promise<readonly Claim[]> {
  const { server, name } = address;
  if (name === undefined) return [];
  const url = `${server}/v1/registries/${encodeURIComponent(name)}`;
  const gate = await registry.ask({ url, signal }).catch((error: unknown) => {
    if (!hasNoEndpoint(error)) throw error;
  });
  const claims = isRecord(gate) ? gate['claims'] : undefined;
  return Object.entries(isRecord(claims) ? claims : {});
}

/** The role and the gate are named where they refuse; all else says itself what it is about. */
function refusalIn(
  { because, remedy }: Readonly<Record<string, unknown>>,
  decided: readonly Readonly<Record<string, unknown>>[],
): string {
  const first = decided.find(
    ({ layer, subject, allowed }) =>
      allowed === false && (layer === 'registry' || (layer === 'role' && subject === 'manageEntries')),
  );
  const what = first && (first['layer'] === 'role' ? 'you lack the role' : 'you do not pass the gate of');
  const where = what === undefined ? '' : `${what} ${String(first?.['subject'])}: `;
  return `${where}${String(because)}${typeof remedy === 'string' ? ` (it takes: ${remedy})` : ''}`;
}

type Claim = readonly [name: string, value: unknown];

function seenBy(
  mode: unknown,
  needed: readonly Claim[],
  { claims, match }: { readonly claims: PublishClaims | undefined; readonly match: string },
): string {
  if (mode === 'anonymous') return 'everyone';
  if (mode === 'auth-only') return 'everyone who is signed in';
  if (Object.keys(claims ?? {}).length === 0)
    return 'super-admins only, because it has no claims; give them with --claim';
  const shown = [...new Set(needed.map((claim) => shownClaim(claim, match)))];
  return `super-admins, and who holds ${shown.join(' and ')}`;
}

/** Of several values readers need all, or any: the registry says which. */
function shownClaim([name, value]: Claim, match: string): string {
  const values = (Array.isArray(value) ? value : [value]).map((one) => `${name}=${String(one)}`);
  if (values.length === 0) return name;
  return values.length > 1 && match === ' or ' ? `(${values.join(match)})` : values.join(match);
}
