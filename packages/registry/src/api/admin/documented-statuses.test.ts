import { expect, test } from 'vitest';
import { repliesOf } from '../openapi/openapi.ts';
import type { Method, Route } from '../route/route.ts';
import { adminUnderTest, type AdminUnderTest, type Request } from './admin.fixture.ts';
import { ADMIN_ROUTES } from '../routes.ts';

const FILE = { file: { path: '/data/x.json' }, syncPolicy: { interval: '5m' } };
const document = (version: string): object => ({ name: 'io.acme/x', version, description: 'd' });
const skill = (namespace: string): object => ({ namespace, name: 's', version: '1', description: 'd' });
const claims = { org: 'acme' };

type Step = readonly [method: Method, url: string, request?: Request];

/** In an order in which each finds what it needs; every row of the table at least once with each of its own statuses. */
const STEPS: readonly Step[] = [
  ['POST', '/open/v0.1/publish', { body: { ...document('1'), claims } }],
  ['POST', '/open/v0.1/publish', { body: { ...document('1'), claims } }],
  ['POST', '/open/v0.1/publish', { body: '{' }],
  ['POST', '/none/v0.1/publish', { body: '{' }],
  ['POST', '/v1/entries', { body: { server: document('2'), claims } }],
  ['POST', '/v1/entries', { body: { server: document('2'), claims } }],
  ['POST', '/v1/entries', { body: {} }],
  ['POST', '/v1/entries', { body: { skill: skill('io.one') } }],
  ['POST', '/v1/entries', { body: { skill: skill('io.two') } }],
  ...['/registry/open/v0', '/v0'].flatMap((door): Step[] => [
    ['POST', `${door}/publish`, { body: { ...document('9'), name: `io.acme/${door.length}` } }],
    ['POST', `${door}/publish`, { body: { ...document('9'), name: `io.acme/${door.length}` } }],
    ['POST', `${door}/publish`, { body: '{' }],
    ['POST', `${door}/validate`, { body: document('9') }],
    ['PATCH', `${door}/servers/io.acme%2Fx/versions/1/status`, { body: { status: 'deprecated' } }],
    ['PATCH', `${door}/servers/io.acme%2Fx/versions/1/status`, { body: {} }],
    ['PATCH', `${door}/servers/io.acme%2Fx/versions/7/status`, { body: { status: 'active' } }],
    ['PATCH', `${door}/servers/io.acme%2Fx/status`, { body: { status: 'active' } }],
    ['PATCH', `${door}/servers/io.acme%2Fx/status`, { body: {} }],
    ['PATCH', `${door}/servers/io.acme%2Fabsent/status`, { body: { status: 'active' } }],
  ]),
  ['POST', '/registry/none/v0/publish', { body: document('9') }],
  ['POST', '/registry/none/v0/validate', { body: document('9') }],
  ['POST', '/registry/a%20b/v0/validate', { body: document('9') }],
  ['GET', '/v1/entries/server/io.acme%2Fx/claims'],
  ['GET', '/v1/entries/robot/x/claims'],
  ['GET', '/v1/entries/server/a%2Fb/claims'],
  ['GET', '/v1/entries/skill/s/claims'],
  ['PUT', '/v1/entries/server/io.acme%2Fx/claims', { body: { claims } }],
  ['PUT', '/v1/entries/server/io.acme%2Fx/claims', { body: '' }],
  ['PUT', '/v1/entries/server/a%2Fb/claims', { body: {} }],
  ['PUT', '/v1/entries/skill/s/claims', { body: {} }],
  ['DELETE', '/v1/entries/server/io.acme%2Fx/versions/2'],
  ['DELETE', '/v1/entries/server/io.acme%2Fx/versions/2'],
  ['DELETE', '/v1/entries/robot/x/versions/2'],
  ['DELETE', '/v1/entries/skill/s/versions/1'],
  ['DELETE', '/open/v0.1/servers/io.acme%2Fx/versions/1'],
  ['DELETE', '/open/v0.1/servers/io.acme%2Fx/versions/1'],
  ['DELETE', '/open/v0.1/servers/-/versions/1'],
  ['PUT', '/v1/sources/new', { body: FILE }],
  ['PUT', '/v1/sources/new', { body: FILE }],
  ['PUT', '/v1/sources/new', { body: {} }],
  ['PUT', '/v1/sources/other', { body: { managed: {} } }],
  ['GET', '/v1/sources'],
  ['GET', '/v1/sources?limit=0'],
  ...['', '/entries', '/sync'].flatMap((path): Step[] => [
    ['GET', `/v1/sources/new${path}`],
    ['GET', `/v1/sources/absent${path}`],
    ['GET', `/v1/sources/a%20b${path}`],
  ]),
  ['POST', '/v1/sources/new/sync'],
  ['POST', '/v1/sources/absent/sync'],
  ['POST', '/v1/sources/internal/sync'],
  ['PUT', '/v1/registries/new', { body: { sources: ['new'] } }],
  ['PUT', '/v1/registries/new', { body: { sources: ['new'] } }],
  ['PUT', '/v1/registries/new', { body: {} }],
  ['GET', '/v1/registries'],
  ['GET', '/v1/registries?cursor=*'],
  ...['', '/entries'].flatMap((path): Step[] => [
    ['GET', `/v1/registries/new${path}`],
    ['GET', `/v1/registries/absent${path}`],
    ['GET', `/v1/registries/a%20b${path}`],
  ]),
  ['GET', '/v1/explain?registry=new&source=new'],
  ['GET', '/v1/explain?claims=5'],
  ['GET', '/v1/explain?claims={}', { as: 'reader' }],
  ['GET', '/v1/explain?registry=absent'],
  ['POST', '/v1/explain', { body: { server: document('1') } }],
  ['POST', '/v1/explain', { body: {} }],
  ['POST', '/v1/explain?registry=absent', { body: { server: document('1') } }],
  ['DELETE', '/v1/sources/new'],
  ['DELETE', '/v1/registries/new'],
  ['DELETE', '/v1/registries/new'],
  ['DELETE', '/v1/registries/a%20b'],
  ['DELETE', '/v1/sources/new'],
  ['DELETE', '/v1/sources/new'],
  ['DELETE', '/v1/sources/a%20b'],
];

test('every documented status of the admin API occurs, and no other', async () => {
  const admin = await adminUnderTest();
  const busy = await adminUnderTest({ listener: { requestRate: () => ({ perSecond: 0.001, burst: 1 }) } });
  const outage = await adminUnderTest();
  const unmanaged = await adminUnderTest({ sources: [], registries: [] });
  await unmanaged.send('POST', '/v0/publish', { body: document('1') });
  outage.api.issuer.broken.set('/.well-known/openid-configuration', 500).set('/jwks', 500);
  for (const [method, url, request] of STEPS) await admin.send(method, url, request);
  await busy.send('GET', '/v1/registries');
  for (const route of ADMIN_ROUTES) {
    await refusals(route, admin);
    for (const api of [busy, outage]) await api.send(route.method, pathOf(route));
  }
  const seen = new Set([admin, busy, outage, unmanaged].flatMap(({ api }) => [...api.seen]));
  const documented = ADMIN_ROUTES.flatMap((route) =>
    Object.keys(repliesOf(route)).map((status) => `${route.name} ${status}`),
  );
  expect([...seen].toSorted()).toEqual(documented.toSorted());
  await Promise.all([admin, busy, outage, unmanaged].map((one) => one.close()));
});

/** What a row answers before its handler runs. */
async function refusals(route: Route, admin: AdminUnderTest): Promise<void> {
  const url = pathOf(route);
  await admin.send(route.method, url, { as: 'nobody' });
  if (typeof route.access === 'object') await admin.send(route.method, url, { as: 'reader' });
  if (route.method === 'GET') return;
  await admin.send(route.method, url, { body: ' '.repeat((route.body?.maxBytes ?? 1024 * 1024) + 1) });
  if (route.body === undefined) return;
  await admin.send(route.method, url, { body: 'x', type: 'text/plain' });
}

function pathOf({ paths: [path] }: Route): string {
  return path.replace('{type}', 'server').replaceAll(/\{\w+\}/g, 'x');
}
