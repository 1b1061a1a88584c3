import * as fc from 'fast-check';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import type { DocumentedOperation } from './documented.ts';
import type { CallerName } from './governed.ts';
import { DATA } from './refusals.ts';

// Requests that nobody sane would send, aimed at documented operations.

export interface HostileRequest {
  readonly operation: DocumentedOperation;
  readonly as: CallerName;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** What a path parameter may well hold. */
export const LIKELY: Readonly<Record<string, readonly string[]>> = {
  registry: ['all', 'all', 'all', 'all', 'all', 'all', 'team', 'gated', 'none'],
  serverName: ['io.acme%2Fweather', 'io.acme%2Flinter', 'weather'],
  namespace: ['io.acme'],
  name: [
    'triage',
    'linter',
    'io.acme%2Flinter',
    'catalog',
    'internal',
    'extra',
    'all',
    'team',
    'fuzz',
    '__proto__',
  ],
  version: ['1.0.0', 'latest', '9'],
  type: ['server', 'server', 'server', 'skill', 'plugin', 'constructor'],
};
const odd = fc.constantFrom(
  '..',
  '.',
  '%2e%2e',
  '%2E',
  '%00',
  '%0d%0a',
  '%2F',
  '%252F',
  '%5c',
  '%zz',
  '%',
  '%ff',
  ';',
  '*',
  "'--",
);
const encodedText = anyText({ minLength: 1, maxLength: 40 }).map((text) =>
  encodeURIComponent(text.toWellFormed()),
);
const tooLong = fc.constant('a'.repeat(3000));

function pathValue(name: string): fc.Arbitrary<string> {
  const likely = fc.constantFrom(...(LIKELY[name] ?? ['x']));
  return fc.oneof({ weight: 12, arbitrary: likely }, { weight: 2, arbitrary: encodedText }, odd, tooLong);
}

/** One of these, or now and then anything. */
function mostly(...values: readonly unknown[]): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...values) }, fc.string(), fc.jsonValue());
}

const MANY = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, 'v']));
const key = fc.oneof(fc.constantFrom('org', 'team', '__proto__', 'constructor', 'toString', ''), fc.string());
const claims = fc.oneof(
  { weight: 6, arbitrary: mostly({ org: 'acme' }, { org: ['acme'], team: 'platform' }, { org: 'other' }) },
  fc.constantFrom<unknown>({ a: { b: 1 } }, MANY, null),
  fc.dictionary(key, mostly('x', ['x', 'y'], []), { maxKeys: 5 }),
);
const versioned = { version: mostly('1.0.0', '2', '3', 'latest'), description: mostly('d') };
const server = fc.record(
  {
    ...versioned,
    name: mostly('io.acme/fuzz', 'io.acme/other', 'fuzz', '__proto__'),
    url: mostly('https://a.test/mcp', 'file:///etc/passwd'),
    _meta: mostly({}, { a: 1 }),
  },
  { requiredKeys: ['name', 'version', 'description'] },
);
const bundle = fc.record({
  ...versioned,
  namespace: mostly('io.acme'),
  name: mostly('fuzz', 'other', '__proto__'),
});
// Without files and addresses: what is fetched later would change the store while nobody asks.
const file = mostly({ data: DATA }, { data: '{' }, { path: '../x' });
const source = fc.oneof(
  { weight: 3, arbitrary: fc.record({ file, claims }, { requiredKeys: ['file'] }) },
  fc.record({ file, managed: mostly({}), syncPolicy: mostly({ interval: '5m' }), filter: fc.jsonValue() }),
  fc.record({ managed: mostly({}) }),
);
const registry = fc.record(
  { sources: mostly(['catalog', 'internal'], ['absent'], []), claims },
  { requiredKeys: ['sources'] },
);
const publish = fc.oneof(
  ...[{ server }, { skill: bundle }, { plugin: bundle }, { server: bundle }, { server, skill: bundle }].map(
    (payload) => fc.record<Record<string, unknown>>({ ...payload, claims }),
  ),
);
const flat = fc.tuple(server, claims).map(([document, given]) => ({ ...document, claims: given }));

/** What an operation takes, by its name. */
const FITTING: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  publishToRegistry: fc.oneof(flat, publish),
  publishEntry: publish,
  putEntryClaims: fc.record({ claims }),
  putSource: source,
  putRegistry: registry,
};

function bodyOf(name: string): fc.Arbitrary<string> {
  const any = fc.oneof(publish, flat, source, registry);
  const json = fc
    .oneof({ weight: 3, arbitrary: FITTING[name] ?? any }, any, fc.jsonValue())
    .map((value) => JSON.stringify(value));
  return fc.oneof(
    { weight: 8, arbitrary: json },
    { weight: 1, arbitrary: anyText() },
    { weight: 1, arbitrary: json.map((text) => text.slice(0, text.length / 2)) },
  );
}

const headers = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  fc.constantFrom<Record<string, string>>(
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/json; charset=utf-7' },
    { 'content-encoding': 'gzip' },
    { 'if-none-match': '*' },
    { 'accept-encoding': 'gzip;q=2,, br;q=x' },
    { 'x-request-id': 'a'.repeat(5000) },
    { 'x-forwarded-for': '127.0.0.1', 'x-original-url': '/v1/sources', 'x-http-method-override': 'DELETE' },
    { origin: 'null', 'access-control-request-method': 'PUT' },
    { range: 'bytes=0-1' },
    // Announced, and never sent.
    { 'content-length': '99999999', 'content-type': 'application/json' },
  ),
);

const queryValue = fc.oneof(
  fc.constantFrom(
    '',
    '0',
    '-1',
    '1',
    '1e9',
    '99999999999999999999',
    'NaN',
    'latest',
    '%00',
    '%zz',
    'all',
    '{}',
    'null',
  ),
  fc.constantFrom(
    '2026-01-01T00:00:00Z',
    'active',
    'io.acme/weather',
    "%' or 1=1 --",
    '%25_',
    '[]',
    '{"__proto__":["x"]}',
  ),
  anyText({ maxLength: 60 }).map((text) => text.toWellFormed()),
  fc.string({ maxLength: 30 }).map((text) => Buffer.from(`${text},1.0.0`).toString('base64url')),
  fc.constant('x'.repeat(9000)),
);

function queryOf(names: readonly string[]): fc.Arbitrary<string> {
  const name = fc.oneof(
    names.length === 0 ? fc.constant('x') : fc.constantFrom(...names),
    fc.string({ maxLength: 5 }),
  );
  return fc
    .array(fc.tuple(name, queryValue), { maxLength: 3 })
    .map((pairs) =>
      pairs.map(([one, value]) => `${encodeURIComponent(one)}=${encodeURIComponent(value)}`).join('&'),
    );
}

/** Requests of some callers to some operations. */
export function hostileRequest(
  operations: readonly DocumentedOperation[],
  callers: readonly CallerName[],
): fc.Arbitrary<HostileRequest> {
  // The forms of one path behave alike, and are no reason to ask less for the others.
  const first = operations.filter(({ operationId, name }) => operationId === name);
  const any = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...first) }, fc.constantFrom(...operations));
  return any.chain((operation) => {
    const names = (place: string): string[] =>
      operation.parameters.filter((parameter) => parameter.in === place).map(({ name }) => name);
    return fc
      .record({
        as: fc.constantFrom(...callers),
        values: fc.record(Object.fromEntries(names('path').map((name) => [name, pathValue(name)]))),
        query: fc.oneof(fc.constant(''), queryOf(names('query'))),
        headers,
        body: fc.option(bodyOf(operation.name), {
          nil: undefined,
          freq: operation.requestBody === undefined ? 1 : 20,
        }),
      })
      .map(({ values, query, ...request }) => {
        const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '');
        return { ...request, operation, target: query === '' ? path : `${path}?${query}` };
      });
  });
}
