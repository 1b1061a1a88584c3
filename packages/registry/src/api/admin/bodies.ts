import { NO_CLAIMS, parseClaims, type ClaimLimits, type Claims } from '@skep/auth/claims/claims.ts';
import { canonicalClaims } from '@skep/auth/claims/same.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { jsonErrorPlace } from '@skep/core/json/judge.ts';
import { parseJson } from '@skep/core/json/parsed-json.ts';
import { isDeeperThan, repeatedMember } from '@skep/core/json/scan.ts';
import { z } from 'zod';
import { claims } from '../../shape/claims.ts';
import { exactlyOne } from '../../shape/texts.ts';
import { DEFAULT_LIMITS, type Limits } from '../../shape/limits.ts';
import { parseSourceBody, requestShape } from '../../sources/source-body.ts';
import type { RegistrySettings, SourceSettings } from '../../store/rows.ts';
import { badRequest } from '../route/parameter.ts';
import type { RequestBody } from '../route/route.ts';

/** A body that an endpoint takes, and how its bytes become what the handler works with. */
export interface BodyRow<T> extends RequestBody {
  /** Fails with `registry/bad-request` and `claims/invalid`. */
  readonly read: (bytes: Buffer, limits: Limits) => T;
}

interface BodyParts<T> extends Pick<RequestBody, 'schema' | 'shape' | 'description'> {
  readonly limit?: RequestBody['limit'];
  readonly parse: (body: JsonBody, limits: Limits) => T;
}

function body<T>({ parse, limit = 'maxBodySize', ...row }: BodyParts<T>): BodyRow<T> {
  return {
    ...row,
    limit,
    maxBytes: DEFAULT_LIMITS[limit],
    read: (bytes, limits) => parse(readJsonBody(bytes), limits),
  };
}

/** For a body that is a document: what becomes of it depends on its exact text. */
const asIs = (given: JsonBody): JsonBody => given;

const component = (name: string) => z.unknown().meta({ $ref: `#/components/schemas/${name}` });
const version = z.string().min(1).max(255).describe('One version; not `latest` and no range');

export const FLAT_PUBLISH_BODY = body({
  schema: 'FlatPublish',
  shape: z.object({
    name: z.string(),
    version,
    url: z.url().optional().describe('Becomes the only remote'),
    transport: z.enum(['streamable-http', 'sse']).default('streamable-http'),
    description: z.string().optional(),
    claims: claims.optional(),
  }),
  description: 'A server in flat form, or `{server | skill | plugin, claims}`',
  parse: asIs,
});

export const PUBLISH_BODY = body({
  schema: 'Publish',
  shape: z
    .object({
      server: component('Server').optional(),
      skill: component('Bundle').optional(),
      plugin: component('Bundle').optional(),
      claims: claims.optional(),
    })
    .meta(exactlyOne(['server', 'skill', 'plugin'])),
  description: 'Exactly one of `server`, `skill` and `plugin`, and the claims of the entry',
  parse: asIs,
});

export const OFFICIAL_BODY = body({
  schema: 'Server',
  description: 'A server document as the official registry defines it',
  parse: asIs,
});

const MAX_MESSAGE = 500;
const status = z.object({
  status: z.enum(['active', 'deprecated', 'deleted'], 'status must be "active", "deprecated" or "deleted"'),
  statusMessage: z
    .string('statusMessage must be a text')
    .max(MAX_MESSAGE, `statusMessage has more than ${MAX_MESSAGE} characters`)
    .optional(),
});

export const STATUS_BODY = body({
  schema: 'StatusBody',
  shape: status,
  description: 'The status, and a message about it for people',
  parse: ({ value }) => checked(status, value),
});

export const CLAIMS_BODY = body({
  schema: 'ClaimsBody',
  shape: z.object({ claims: claims.optional() }),
  description: 'The claims that replace those of the entry; none clear them',
  parse: (given, limits) => claimsOf(given, limits.claims),
});

/** The member `claims`; absent means none. Fails with `claims/invalid`. */
export function claimsOf({ value }: JsonBody, limits: ClaimLimits): Claims {
  return Object.hasOwn(value, 'claims') ? parseClaims(value['claims'], limits) : NO_CLAIMS;
}

export const SOURCE_BODY = body({
  schema: 'SourceBody',
  shape: requestShape,
  description: 'Exactly one of `git`, `api`, `file` and `managed`, and what goes with it',
  limit: 'maxInlineDataSize',
  parse: ({ value }, limits): SourceSettings => {
    try {
      return parseSourceBody(value, limits.claims);
    } catch (error) {
      if (error instanceof SkepError) throw badRequest(`invalid source configuration: ${error.message}`);
      throw error;
    }
  },
});

const NO_SOURCE = 'at least one source is required';
/** A member that is not known could be a misspelt `claims`, and leaving it out would open the registry. */
const registry = z.strictObject({
  sources: z
    .array(z.string('sources must be a list of names'), NO_SOURCE)
    .min(1, NO_SOURCE)
    .superRefine((names, context) => {
      const again = names.find((name, index) => names.indexOf(name) < index);
      if (again !== undefined) context.addIssue({ code: 'custom', message: `duplicate source: ${again}` });
    })
    .meta({ uniqueItems: true }),
  claims: claims.optional(),
});

export const REGISTRY_BODY = body({
  schema: 'RegistryBody',
  shape: registry,
  description: 'Sources in order of priority, and the claims of the gate',
  parse: (given, limits): RegistrySettings => {
    const { sources } = checked(registry, given.value, 'invalid registry configuration: ');
    // No database is asked for what it could not hold.
    const impossible = sources.find((name) => /\p{Cc}/u.test(name));
    if (impossible !== undefined) throw badRequest(`source not found: ${impossible}`);
    return { sources, claims: canonicalClaims(claimsOf(given, limits.claims)) };
  },
});

/** The value of a body that has this shape. Fails with `registry/bad-request`, naming the first thing that is wrong. */
function checked<Shape extends z.ZodType>(shape: Shape, value: unknown, before = ''): z.output<Shape> {
  const read = shape.safeParse(value);
  if (read.success) return read.data;
  const { issues } = read.error;
  const unknown = issues.find((issue) => issue.code === 'unrecognized_keys');
  const message =
    unknown === undefined
      ? (issues[0]?.message ?? '')
      : `unknown key ${JSON.stringify(unknown.keys[0]?.slice(0, 100))}`;
  throw badRequest(before + message);
}

/** A body that is a JSON object, decoded, and its exact text for what must stay as it was written. */
export interface JsonBody {
  readonly value: Readonly<Record<string, unknown>>;
  readonly text: string;
}

// Programs that recurse over a document break on more; real documents have fewer than ten levels.
const DEEPEST = 64;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads a request body. An object that names a member twice is refused, because what is checked here might not be what
 * another reader sees; so is half of a surrogate pair, which no store and no answer can hold as it was sent (RFC 7493
 * §2.1). Fails with `registry/bad-request`.
 */
function readJsonBody(bytes: Buffer): JsonBody {
  const text = textOf(bytes);
  const value = parsed(text);
  if (!isRecord(value)) throw invalidBody('expected an object');
  if (isDeeperThan(DEEPEST, text)) throw invalidBody('nested too deeply');
  if (hasLoneSurrogate(text)) throw invalidBody('it holds half of a surrogate pair');
  const repeated = repeatedMember(text);
  if (repeated !== undefined)
    throw invalidBody(`the member ${JSON.stringify(repeated.slice(0, 100))} occurs twice in one object`);
  return { value, text };
}

function textOf(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidBody('not UTF-8 text');
  }
}

function parsed(text: string): unknown {
  if (text.trim() === '') throw invalidBody('it is empty');
  try {
    return parseJson(text);
  } catch {
    const place = jsonErrorPlace(text);
    throw invalidBody(
      place === undefined ? 'not valid JSON' : `not valid JSON at line ${place.line}, column ${place.column}`,
    );
  }
}

/** Bytes that are UTF-8 hold none, so only escapes can. */
function hasLoneSurrogate(text: string): boolean {
  if (!/\\u[dD][89a-fA-F]/.test(text)) return false;
  let found = false;
  JSON.parse(text, (key, value: unknown) => {
    found ||= !key.isWellFormed() || (typeof value === 'string' && !value.isWellFormed());
    return value;
  });
  return found;
}

function invalidBody(detail: string): SkepError {
  return badRequest(`invalid request body: ${detail}`);
}
