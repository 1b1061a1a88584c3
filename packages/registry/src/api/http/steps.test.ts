import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { apiUnderTest } from '../api.fixture.ts';
import type { Route } from '../route/route.ts';
import { snapshotOf } from '../snapshot.fixture.ts';
import { steps, type Facet, type StepOptions } from './steps.ts';

/** The order of the interface, typed once more so that a moved step is noticed. */
const ORDER = [
  'guard',
  'find',
  'cors',
  'identify',
  'known',
  'rate',
  'cached',
  'role',
  'type',
  'body',
  'again',
  'answer',
];

function unreached(): never {
  throw new SkepError('internal/bug');
}

const options = (optional: readonly string[]): StepOptions => ({
  routes: [],
  context: {} as StepOptions['context'],
  clock: manualClock(),
  ...(optional.includes('cors') ? { cors: { allowedOrigins: '*', maxAge: 1 } } : {}),
  ...(optional.includes('rate') ? { requestRate: () => undefined } : {}),
});

test('every subset of optional steps keeps the order, and every step finds what it reads', () => {
  fc.assert(
    fc.property(fc.subarray(['cors', 'rate']), (optional) => {
      const list = steps(options(optional), unreached);
      const absent = ['cors', 'rate'].filter((name) => !optional.includes(name));
      expect(list.map(({ name }) => name)).toEqual(ORDER.filter((name) => !absent.includes(name)));
      const written = new Set<Facet>(['head']);
      for (const { name, reads, writes } of list) {
        expect(
          reads.filter((facet) => !written.has(facet)),
          name,
        ).toEqual([]);
        for (const facet of writes) written.add(facet);
      }
    }),
  );
});

/** Takes a body from whoever holds a role; says so where it is reached. */
const row: Route = {
  method: 'PUT',
  listener: 'public',
  paths: ['/things/{name}'],
  access: 'public',
  name: 'putThing',
  summary: '',
  path: {},
  query: {},
  body: { description: '', schema: 'Error', limit: 'maxBodySize', maxBytes: 4 },
  replies: {},
  handle: (_context, { path, query, body }) => ({
    status: 200,
    body: () => JSON.stringify({ path, query, body: body.toString() }),
  }),
};

test('a request with everything wrong hears of the first fault in the order; mended one by one, of the next', async () => {
  let left = 2;
  const rate = { perSecond: 0.001, burst: 1 };
  const api = await apiUnderTest({
    snapshot: snapshotOf({}),
    routes: [row],
    listener: {
      hosts: () => ({ hosts: ['here'], origins: undefined }),
      // The rate is in force from the third request that reaches it.
      requestRate: () => ((left -= 1) < 0 ? rate : undefined),
    },
  });
  const asked = async (url: string, headers: Record<string, string>, payload = '{"too":"long"}') => {
    const { statusCode } = await api.ask({ method: 'PUT', url, headers, payload });
    return statusCode;
  };
  const json = { host: 'here', 'content-type': 'application/json' };
  expect([
    await asked('/../%zz', { host: 'elsewhere' }),
    await asked('/../%zz', { host: 'here' }),
    await asked('/things/%zz', { host: 'here' }),
    await asked('/nothing/x', { host: 'here' }),
    await asked('/things/x', { host: 'here' }),
    await asked('/things/x', json),
    await asked('/things/x', json, '{}'),
    await asked('/things/x', { host: 'here' }, '{}'),
  ]).toEqual([403, 400, 400, 404, 415, 413, 200, 429]);
  await api.close();
});

test('parameters of path and query arrive decoded once, and a repeated one as a list', async () => {
  const api = await apiUnderTest({ snapshot: snapshotOf({}), routes: [row] });
  const headers = { 'content-type': 'application/json' };
  const url = '/things/a%2Fb%2541?x=1+2&y=%31&y=2&z';
  const answer = await api.ask({ method: 'PUT', url, headers, payload: '{}' });
  const query = { x: '1 2', y: ['1', '2'], z: '' };
  expect(answer.json()).toEqual({ path: { name: 'a/b%41' }, query, body: '{}' });
  await api.close();
});

test('an answer that was read a moment ago is for its method alone', async () => {
  const { body: _, ...bare } = row;
  const read: Route = {
    ...bare,
    method: 'GET',
    access: 'registry',
    name: 'get',
    handle: () => ({ status: 200, etag: '"x"', body: () => 'read' }),
  };
  const remove: Route = {
    ...bare,
    method: 'DELETE',
    name: 'delete',
    handle: () => ({ status: 200, body: () => 'deleted' }),
  };
  const api = await apiUnderTest({ snapshot: snapshotOf({}), routes: [read, remove] });
  const bodies: string[] = [];
  for (const method of ['GET', 'GET', 'DELETE', 'GET']) {
    bodies.push((await api.ask({ method, url: '/things/x' })).body);
  }
  expect(bodies).toEqual(['read', 'read', 'deleted', 'read']);
  await api.close();
});
