import * as fc from 'fast-check';
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

const word = fc.oneof(
  fc.constantFrom(
    'all',
    'gated',
    'none',
    'catalog',
    'internal',
    'extra',
    'io.acme',
    'io.acme%2Fweather',
    'weather',
  ),
  fc.constantFrom('triage', 'linter', '1.0.0', 'latest', 'server', 'skill', 'v1', '__proto__', 'constructor'),
);
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
const anyText = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 40 })
  .map((text) => encodeURIComponent(text.toWellFormed()));
const pathValue = fc.oneof(
  { weight: 4, arbitrary: word },
  { weight: 2, arbitrary: anyText },
  odd,
  fc.constant('a'.repeat(3000)),
);

const key = fc.oneof(fc.constantFrom('org', 'team', '__proto__', 'constructor', 'toString', ''), fc.string());
const claims = fc.oneof(
  fc.constantFrom<unknown>(
    { org: 'acme' },
    { org: ['acme'], team: 'platform' },
    { org: 'other' },
    null,
    5,
    [],
    { a: { b: 1 } },
  ),
  fc.dictionary(key, fc.oneof(fc.string(), fc.array(fc.string(), { maxLength: 3 }), fc.jsonValue()), {
    maxKeys: 5,
  }),
  fc.constant(Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${String(index)}`, 'v']))),
);
const document = fc.record(
  {
    name: fc.oneof(
      fc.constantFrom('io.acme/fuzz', 'fuzz', 'a/b/c', '..', '__proto__'),
      fc.string(),
      fc.jsonValue(),
    ),
    namespace: fc.oneof(fc.constant('io.acme'), fc.jsonValue()),
    version: fc.oneof(fc.constantFrom('1.0.0', 'latest', '^1'), fc.string(), fc.jsonValue()),
    description: fc.oneof(fc.constant('d'), fc.jsonValue()),
    url: fc.oneof(fc.webUrl(), fc.jsonValue()),
    remotes: fc.jsonValue(),
    _meta: fc.jsonValue(),
  },
  { requiredKeys: [] },
);
// Without files and addresses: what is fetched later would change the store while nobody asks.
const source = fc.record(
  {
    file: fc.oneof(fc.constant({ data: DATA }), fc.record({ data: fc.string() }), fc.jsonValue()),
    managed: fc.constantFrom<unknown>({}, null, 1),
    syncPolicy: fc.oneof(fc.constant({ interval: '5m' }), fc.jsonValue()),
    filter: fc.jsonValue(),
    sources: fc.oneof(fc.array(fc.constantFrom('catalog', 'internal', 'absent')), fc.jsonValue()),
    claims,
  },
  { requiredKeys: [] },
);
const json = fc
  .oneof(
    fc.record({ server: document, skill: document, plugin: document, claims }, { requiredKeys: [] }),
    fc.tuple(document, claims).map(([flat, given]) => ({ ...flat, claims: given })),
    source,
    fc.jsonValue(),
  )
  .map((value) => JSON.stringify(value));
const body = fc.oneof(
  { weight: 8, arbitrary: json },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  { weight: 1, arbitrary: json.map((text) => text.slice(0, text.length / 2)) },
);

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
  fc.string({ unit: 'binary', maxLength: 60 }).map((text) => text.toWellFormed()),
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
  return fc.constantFrom(...operations).chain((operation) => {
    const named = operation.parameters.map(({ name }) => name);
    const count = (operation.path.match(/\{\w+\}/g) ?? []).length;
    return fc
      .record({
        as: fc.constantFrom(...callers),
        values: fc.array(pathValue, { minLength: count, maxLength: count }),
        query: fc.oneof(fc.constant(''), queryOf(named.slice(count))),
        headers,
        body: operation.requestBody === undefined ? fc.constant(undefined) : body,
      })
      .map(({ values, query, ...request }) => {
        let next = 0;
        const path = operation.path.replaceAll(/\{\w+\}/g, () => values[next++] ?? '');
        return { ...request, operation, target: query === '' ? path : `${path}?${query}` };
      });
  });
}
