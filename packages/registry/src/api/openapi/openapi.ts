import { z } from 'zod';
import { DEFAULT_LIMITS, type Limits } from '../../shape/limits.ts';
import type { Parameters } from '../route/parameter.ts';
import type { Reply, RequestBody, Route, Replies } from '../route/route.ts';
import { SCHEMAS, text } from './schemas.ts';

export interface OpenApiInput {
  readonly routes: readonly Route[];
  readonly version: string;
  /** The default ones when absent. */
  readonly limits?: Limits;
}

/**
 * The OpenAPI 3.1 document of the public listener. Of a path's forms the two with one segment per parameter are listed;
 * OpenAPI cannot express that a name may also span two.
 */
export function openApiDocument({ routes, version, limits = DEFAULT_LIMITS }: OpenApiInput): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes.filter(({ listener }) => listener === 'public')) {
    for (const [index, path] of documentedPaths(route).entries()) {
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, index, limits) };
    }
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Skep registry',
      version,
      description:
        'Catalogues of MCP servers, in the MCP Registry API v0.1. Every error is `{"error": "…"}`. Beside what is listed, a ' +
        'request that no operation can take is 400, 404, 405, 408 or 431, and a fault of the server is 500 or 504. Without sign-in a host name or an origin that is not served is 403.',
    },
    paths,
    components: {
      schemas: { ...SCHEMAS, ...bodySchemas(routes) },
      headers: HEADERS,
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    },
  };
}

/** The components of the bodies that requests bring, as their shapes say. */
function bodySchemas(routes: readonly Route[]): Record<string, object> {
  const rows = routes.flatMap(({ body }) =>
    body?.shape === undefined ? [] : [[body.schema, jsonSchemaOf(body.shape)] as const],
  );
  return Object.fromEntries(rows);
}

function jsonSchemaOf(shape: z.ZodType): object {
  const { $schema: _, ...schema } = z.toJSONSchema(shape, { io: 'input', unrepresentable: 'any' });
  return schema;
}

export function documentedPaths(route: Route): string[] {
  return route.paths.filter((path) => !path.includes('{namespace}/{serverName}') && !path.endsWith('*'));
}

function operation(route: Route, form: number, limits: Limits): object {
  return {
    // Operation ids are unique, and the same operation has several paths.
    operationId: form === 0 ? route.name : `${route.name}${form + 1}`,
    summary: route.summary,
    parameters: [
      ...parameters(ofPath(route.path, documentedPaths(route)[form] ?? ''), 'path', limits),
      ...parameters(route.query, 'query', limits),
    ],
    ...(route.body === undefined ? {} : { requestBody: requestBody(route.body) }),
    ...(route.access === 'public' ? {} : { security: SECURITY }),
    responses: Object.fromEntries(
      Object.entries(repliesOf(route)).map(([status, reply]) => [
        status,
        response(reply, headersOf(route, Number(status))),
      ]),
    ),
  };
}

const HEADERS = {
  'X-Request-Id': { required: true, description: 'The one of the request, or a new one', schema: text },
  ETag: { required: true, description: 'For If-None-Match', schema: text },
  Location: { description: 'Path of what was created, where the caller can read it', schema: text },
  'WWW-Authenticate': { description: 'How to get a token (RFC 6750, RFC 9728)', schema: text },
  'Retry-After': { required: true, description: 'Seconds to wait', schema: { ...text, pattern: '^\\d+$' } },
} as const;

/** What tells a client how to go on, by status. */
const TELLING: Readonly<Record<number, keyof typeof HEADERS>> = {
  201: 'Location',
  304: 'ETag',
  401: 'WWW-Authenticate',
  429: 'Retry-After',
  503: 'Retry-After',
};

function headersOf(route: Route, status: number): (keyof typeof HEADERS)[] {
  // What can be asked for again with a condition has a tag.
  const telling = status === 200 && 304 in repliesOf(route) ? 'ETag' : TELLING[status];
  return telling === undefined ? ['X-Request-Id'] : ['X-Request-Id', telling];
}

/** Everything that a row may answer; what it says itself comes first. */
export function repliesOf(route: Route): Readonly<Record<number, Reply>> {
  const replies = Object.entries({ ...commonReplies(route), ...route.replies });
  return Object.fromEntries(
    replies.map(([status, reply]) => [
      status,
      typeof reply === 'string' ? { description: reply, schema: 'Error' } : reply,
    ]),
  );
}

/** A token, or none: the document is the same in every mode, and without sign-in nobody needs one. */
const SECURITY = [{ bearer: [] }, {}];

function requestBody({ description, schema }: RequestBody): object {
  return {
    description,
    required: true,
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
  };
}

/** Those that this form of the path holds. */
function ofPath(from: Parameters, path: string): Parameters {
  return Object.fromEntries(Object.entries(from).filter(([name]) => path.includes(`{${name}}`)));
}

function parameters(from: Parameters, place: 'path' | 'query', limits: Limits): object[] {
  return Object.entries(from).map(([name, { description, schema }]) => ({
    name,
    in: place,
    required: place === 'path',
    description,
    schema: typeof schema === 'function' ? schema(limits) : schema,
  }));
}

function response({ description, schema }: Reply, names: readonly (keyof typeof HEADERS)[]): object {
  const headers = Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
  if (schema === undefined) return { description, headers };
  return {
    description,
    headers,
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
  };
}

/**
 * What a row may answer before its handler runs, by whom it answers and what it takes. Rows do not repeat these; the
 * OpenAPI document holds both.
 */
export function commonReplies({ access, body, method }: Pick<Route, 'access' | 'body' | 'method'>): Replies {
  if (access === 'public') return {};
  return {
    401: 'There is no valid token; `WWW-Authenticate` says how to get one',
    ...(access === 'registry' ? { 403: 'The caller lacks the claims of the registry' } : {}),
    ...(typeof access === 'object' ? { 403: `The caller lacks the role ${access.role}` } : {}),
    ...(method !== 'GET' && body === undefined
      ? { 413: 'There is a large body, and the endpoint takes none' }
      : {}),
    ...(body === undefined
      ? {}
      : {
          413: `The body is larger than ${body.maxBytes} bytes`,
          415: 'The body does not say that it is JSON',
        }),
    429: 'Too many requests; `Retry-After` says when to go on',
    503: 'The identity provider or the store cannot be used; `Retry-After` says when to try again',
  };
}
