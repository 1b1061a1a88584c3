import { memberSlice } from '@skep/core/json/scan.ts';
import { SERVER_SCHEMA_URL } from '@skep/core/catalog/server-json.ts';
import { badRequest } from '../../route/parameter.ts';
import type { JsonBody } from '../bodies.ts';

/** Members of a server document in its usual order; each is taken over as it was written. */
const BEFORE_REMOTES = [
  'title',
  'description',
  'version',
  'websiteUrl',
  'repository',
  'icons',
  'packages',
] as const;

const TRANSPORTS: readonly unknown[] = ['streamable-http', 'sse'];

/**
 * The server document of a flat publish request (docs/behaviour/registry.md#publishing): `url` becomes its only remote,
 * all members that the official document has are kept, any others are left out. Fails with `registry/bad-request`.
 */
export function flatServerDocument(body: JsonBody): string {
  const { text } = body;
  const members = [
    ['$schema', memberSlice(text, ['$schema']) ?? JSON.stringify(SERVER_SCHEMA_URL)],
    ['name', memberSlice(text, ['name'])],
    ...BEFORE_REMOTES.map((key) => [key, memberSlice(text, [key]) ?? fallback(key)]),
    ['remotes', remotes(body)],
    ['_meta', memberSlice(text, ['_meta'])],
  ];
  const written = members.flatMap(([key, slice]) =>
    slice === undefined ? [] : [`${JSON.stringify(key)}:${slice}`],
  );
  return `{${written.join(',')}}`;
}

/** Only name and version are required here; the official document asks for a description too. */
function fallback(key: string): string | undefined {
  return key === 'description' ? '""' : undefined;
}

function remotes({ text, value }: JsonBody): string | undefined {
  const { url, transport = 'streamable-http' } = value;
  const listed = memberSlice(text, ['remotes']);
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
