import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Documented, type DocumentedOperation } from './registry/documented.ts';
import { Governed } from './registry/governed.ts';
import type { Running } from './registry/process.ts';
import { DEFAULTS, type Scenario, SCENARIOS, type Step } from './registry/scenarios.ts';
import { type Received, send } from './registry/send.ts';

// The running program against the OpenAPI document that it serves: every documented status of every operation and path
// form is provoked, its headers and body are held against what is documented, and nothing else is answered.

let governed: Governed;
let programs: Readonly<Record<NonNullable<Step['of']>, Running>>;
let documented: Documented;

beforeAll(async () => {
  governed = await Governed.create();
  programs = {
    governed: await governed.serve(),
    anonymous: await governed.serve({ auth: { mode: 'anonymous' } }),
    restless: await governed.serve({ limits: { requestRate: { perSecond: 0.001, burst: 1 } } }),
    'cut-off': await governed.serve({ auth: await governed.authWithoutKeys() }),
    unmanaged: await governed.serve({ managed: false }),
  };
  const { text } = await send(programs.governed.open, { target: '/openapi.json' });
  documented = new Documented(text);
  // Uses up what one caller may ask.
  await send(programs.restless.open, { target: '/v1/me', headers: governed.as('root') });
});
afterAll(() => governed.end());

let made = 0;

/** A request of a scenario, with what has to be done before it done. */
async function provoke(operation: DocumentedOperation, scenario: Scenario): Promise<Received> {
  made += 1;
  const fresh = `fresh-${made}`;
  const filled = (text: string): string => text.replaceAll('{fresh}', fresh);
  const filledBody = (body: unknown): string => filled(JSON.stringify(body));
  for (const [asked, body] of scenario.after ?? []) {
    const [method, target = ''] = filled(asked).split(' ');
    const headers = governed.as('root');
    const { status, text } = await send(programs.governed.open, {
      target,
      headers,
      ...(method === undefined ? {} : { method }),
      ...(body === undefined ? {} : { body: filledBody(body) }),
    });
    expect([status, text]).toEqual([201, text]);
  }
  const { of = 'governed', as = 'root', path = {}, query = '', headers = {}, body } = scenario;
  const target = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    filled(path[name] ?? DEFAULTS[name] ?? 'x'),
  );
  return send(programs[of].open, {
    method: operation.method,
    target: query === '' ? target : `${target}?${query}`,
    headers: { ...governed.as(as), ...headers },
    ...(body === undefined ? {} : { body: filledBody(body) }),
  });
}

/** What every operation of a kind answers alike. */
function commonScenario({ name }: DocumentedOperation, status: number): Scenario | undefined {
  switch (status) {
    case 401:
      return { as: 'nobody' };
    case 403:
      return { as: 'reader' };
    case 413:
      return { headers: { 'content-type': 'application/json', 'content-length': '99999999' } };
    case 415:
      return { headers: { 'content-type': 'text/plain' }, body: {} };
    case 429:
      return { of: 'restless' };
    case 503:
      return { of: 'cut-off' };
    default:
      return status === 304 ? SCENARIOS[name]?.[200] : undefined;
  }
}

async function provoked(operation: DocumentedOperation, status: number): Promise<Received | undefined> {
  const scenario = SCENARIOS[operation.name]?.[status] ?? commonScenario(operation, status);
  if (scenario === undefined) return undefined;
  if (status !== 304) return provoke(operation, scenario);
  const { etag } = (await provoke(operation, scenario)).headers;
  return provoke(operation, { ...scenario, headers: { 'if-none-match': String(etag) } });
}

/** What every operation says alike, and the header that tells a client how to go on. */
const COMMON: Readonly<Record<number, readonly [error: string, header?: string]>> = {
  401: ['missing or malformed authorization header', 'www-authenticate'],
  413: ['request body too large'],
  415: ['unsupported content type'],
  429: ['too many requests', 'retry-after'],
  503: ['the identity provider does not answer', 'retry-after'],
};

function commonFaults({ status, headers, text }: Received): string[] {
  const [error, header] = COMMON[status] ?? [];
  const says = error === undefined || text === JSON.stringify({ error });
  return [
    ...(says ? [] : [`says ${text}`]),
    ...(header === undefined || header in headers ? [] : [`lacks ${header}`]),
  ];
}

/** What is wrong with the answer to a scenario of an operation and status; empty where nothing is. */
async function faultsOf(operation: DocumentedOperation, status: number): Promise<string[]> {
  const own = SCENARIOS[operation.name]?.[status];
  const answer = await provoked(operation, status);
  if (answer === undefined) return ['is documented, and no scenario provokes it'];
  if (answer.status !== status) return [`was expected, ${answer.status} came: ${answer.text}`];
  return [...documented.faults(operation, answer), ...(own === undefined ? commonFaults(answer) : [])];
}

describe('the OpenAPI document of the running program', () => {
  test(
    'documents exactly what is answered: every operation, status, header and body',
    { timeout: 60_000 },
    async () => {
      const faults: string[] = [];
      for (const operation of documented.operations) {
        for (const status of Object.keys(operation.responses)) {
          const found = await faultsOf(operation, Number(status));
          faults.push(...found.map((fault) => `${operation.operationId} ${status}: ${fault}`));
        }
      }
      expect(faults).toEqual([]);
    },
  );

  test('describes the bodies that are accepted', () => {
    const accepted = documented.operations.flatMap((operation) =>
      Object.entries(SCENARIOS[operation.name] ?? {})
        .filter(([status, { body }]) => Number(status) < 300 && body !== undefined)
        .map(([, { body }]) => ({ operation, body })),
    );
    expect(accepted.length).toBeGreaterThan(5);
    expect(accepted.flatMap(({ operation, body }) => documented.requestFaults(operation, body))).toEqual([]);
  });

  test('has no scenario for what is not documented', () => {
    const known = new Set(
      documented.operations.flatMap(({ name, responses }) =>
        Object.keys(responses).map((status) => `${name} ${status}`),
      ),
    );
    const asked = Object.entries(SCENARIOS).flatMap(([name, steps]) =>
      Object.keys(steps).map((status) => `${name} ${status}`),
    );
    expect(asked.filter((one) => !known.has(one))).toEqual([]);
  });
});
