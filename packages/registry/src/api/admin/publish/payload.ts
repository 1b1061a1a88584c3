import { isRecord } from '@skep/core/json/is-record.ts';
import { parseJson } from '@skep/core/json/parsed-json.ts';
import { NO_CLAIMS, type Claims } from '@skep/auth/claims/claims.ts';
import { decodeEntry, type Entry, type EntryKind } from '@skep/core/catalog/entry.ts';
import { publishedVersionFault, serverNameFault } from '@skep/core/catalog/entry-name.ts';
import { compactText, findMembers, memberSlice, rawAt } from '@skep/core/json/scan.ts';
import { PUBLISHER_META } from '@skep/core/catalog/extension-summary.ts';
import { SERVER_SCHEMA_URL } from '@skep/core/catalog/server-json.ts';
import type { Authority } from '../../../access/authority.ts';
import { enforce } from '../../../access/decision.ts';
import { decideClaimsGiven } from '../../../access/publish-rules.ts';
import { sizeFault } from '../../../sync/ingest.ts';
import { badRequest } from '../../route/parameter.ts';
import type { Limits } from '../../../shape/limits.ts';
import { claimsOf, type JsonBody } from '../bodies.ts';

/** What somebody wants to publish, decoded and checked by itself. */
export interface Payload {
  readonly entry: Entry;
  readonly claims: Claims;
}

/** One document and its kind, not looked into yet. */
export interface Draft {
  readonly kind: EntryKind;
  readonly document: string;
}

const KINDS: readonly EntryKind[] = ['server', 'skill', 'plugin'];

/** The body of `POST /v1/entries`. */
export function wrappedDraft({ value, text }: JsonBody): Draft {
  const [kind, ...others] = KINDS.filter((candidate) => Object.hasOwn(value, candidate));
  if (kind === undefined || others.length > 0) {
    throw badRequest("exactly one of 'server', 'skill', or 'plugin' must be provided");
  }
  return { kind, document: memberSlice(text, [kind]) ?? '' };
}

/** The body of a publish at the door of a registry: flat, or the same wrapper. */
export function seedDraft(body: JsonBody): Draft {
  if (KINDS.some((kind) => Object.hasOwn(body.value, kind))) return wrappedDraft(body);
  return { kind: 'server', document: flatServerDocument(body) };
}

export interface PayloadRules {
  /** The door of a registry also takes names without a namespace (docs/behaviour/registry.md#publishing). */
  readonly bareNames: 'accepted' | 'refused';
  readonly limits: Limits;
}

/** Checks claims, name, version and document, in this order. Fails with `claims/invalid` or `registry/bad-request`. */
export function readPayload(body: JsonBody, draft: Draft, rules: PayloadRules): Payload {
  const claims = claimsOf(body, rules.limits.claims);
  const value = parseJson(draft.document);
  if (draft.kind === 'server') requireServerName(value, rules);
  requireVersion(value);
  requireHttpRemotes(value);
  const decoded = decodeEntry({ kind: draft.kind, value, ...compactText(draft.document) });
  if ('fault' in decoded) throw badRequest(`invalid ${draft.kind}: ${decoded.fault}`);
  requireSmallMeta(decoded.entry, rules.limits.maxMetaSize);
  const large = sizeFault(decoded.entry, rules.limits);
  if (large !== undefined) throw badRequest(`invalid ${draft.kind}: ${large}`);
  return { entry: decoded.entry, claims };
}

function requireServerName(value: unknown, { bareNames }: PayloadRules): void {
  const name = memberOf(value, 'name');
  const fault = typeof name === 'string' ? serverNameFault(name) : 'the name must be a text';
  if (fault !== undefined) throw badRequest(`invalid server name: ${fault}`);
  if (bareNames === 'refused' && !String(name).includes('/')) {
    throw badRequest('invalid server name: the name must have the form namespace/name');
  }
}

function requireVersion(value: unknown): void {
  const version = memberOf(value, 'version');
  const fault = typeof version === 'string' ? publishedVersionFault(version) : 'the version must be a text';
  if (fault !== undefined) throw badRequest(`invalid version: ${fault}`);
}

/** As the official schema has it; nothing that runs servers can use another address. */
function requireHttpRemotes(value: unknown): void {
  const remotes = memberOf(value, 'remotes');
  if (!Array.isArray(remotes)) return;
  for (const [index, remote] of remotes.entries()) {
    const url = memberOf(remote, 'url');
    if (typeof url !== 'string' || /^https?:\/\/\S+$/iu.test(url)) continue;
    throw badRequest(`invalid server: remotes[${index}].url must be an http or https URL`);
  }
}

function requireSmallMeta({ json }: Entry, maxBytes: number): void {
  const bytes = Buffer.byteLength(memberSlice(json, ['_meta', PUBLISHER_META]) ?? '');
  if (bytes > maxBytes) {
    throw badRequest(`the publisher's block of _meta has ${bytes} bytes, at most ${maxBytes} are allowed`);
  }
}

function memberOf(value: unknown, key: 'name' | 'version' | 'remotes' | 'url'): unknown {
  return isRecord(value) ? value[key] : undefined;
}

/** Said before anything is said about the claims or the document themselves (docs/behaviour/registry.md#publishing). */
export function requireClaims(authority: Authority, { value }: JsonBody): void {
  if (Object.hasOwn(value, 'claims')) return;
  enforce(decideClaimsGiven(authority, NO_CLAIMS));
}

/** Members of a server document in its usual order; each is taken over as it was written. */
const MEMBERS = [
  '$schema',
  'name',
  'title',
  'description',
  'version',
  'websiteUrl',
  'repository',
  'icons',
  'packages',
  'remotes',
  '_meta',
] as const;

type Member = (typeof MEMBERS)[number];

const WANTED: ReadonlySet<string> = new Set(MEMBERS);

/** Only name and version are required here; the official document asks for these too. */
const FALLBACKS: Partial<Record<Member, string>> = {
  $schema: JSON.stringify(SERVER_SCHEMA_URL),
  description: '""',
};

const TRANSPORTS: readonly unknown[] = ['streamable-http', 'sse'];

/**
 * The server document of a flat publish request (docs/behaviour/registry.md#publishing): `url` becomes its only remote,
 * all members that the official document has are kept, any others are left out. Fails with `registry/bad-request`.
 */
function flatServerDocument(body: JsonBody): string {
  const { text } = body;
  const spans = findMembers(text, 0, WANTED, 'last');
  const written = MEMBERS.flatMap((key) => {
    const span = spans?.get(key);
    const given = span === undefined ? FALLBACKS[key] : rawAt(text, span);
    const member = key === 'remotes' ? remotes(body, given) : given;
    return member === undefined ? [] : [`"${key}":${member}`];
  });
  return `{${written.join(',')}}`;
}

function remotes({ value }: JsonBody, listed: string | undefined): string | undefined {
  const { url, transport = 'streamable-http' } = value;
  if (url === undefined) return listed;
  if (listed !== undefined) throw badRequest('give either "url" or "remotes", not both');
  if (!TRANSPORTS.includes(transport)) {
    throw badRequest(`invalid transport ${shown(transport)}: must be "streamable-http" or "sse"`);
  }
  if (typeof url !== 'string' || !isHttpUrl(url)) {
    throw badRequest(`invalid url ${shown(url)}: must be an absolute http or https URL`);
  }
  return `[{"type":${JSON.stringify(transport)},"url":${JSON.stringify(url)}}]`;
}

function isHttpUrl(text: string): boolean {
  if (!/^https?:\/\//i.test(text) || /\s/.test(text) || !URL.canParse(text)) return false;
  return new URL(text).hostname !== '';
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 100)) : `of type ${typeof value}`;
}
