import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AUDIT_EVENTS } from '@skep/registry/config/audit-events.ts';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { AUDIENCE, type IdentityProvider, startIdentityProvider } from './fixtures/identity-provider.ts';
import { RegistryFolder, type Running } from './registry/process.ts';

// Every event of the audit log (docs/behaviour/registry.md#audit-log), written by the running program, and what becomes
// of a log that cannot be written.

interface Line {
  readonly type: string;
  readonly outcome: string;
  readonly subjects: Readonly<Record<string, string>>;
  readonly target: Readonly<Record<string, string>>;
  readonly metadata: { readonly extra: Readonly<Record<string, unknown>> };
}

const SECRETS = ['hunter2', 'topsecret', 's3cret'];

let idp: IdentityProvider;
let folder: RegistryFolder;
beforeAll(async () => {
  idp = await startIdentityProvider();
});
afterAll(() => idp.stop());
beforeEach(async () => {
  folder = await RegistryFolder.create();
});
afterEach(() => folder.remove());

async function serve(audit: object, extra: object = {}): Promise<Running> {
  await folder.write('c.json', JSON.stringify([{ name: 'io.a/one', version: '1.0.0', description: 'one' }]));
  const config = {
    sources: [
      { name: 'files', file: { path: 'c.json' }, syncPolicy: { interval: '1h' } },
      { name: 'own', managed: {} },
    ],
    registries: [{ name: 'all', sources: ['files', 'own'] }],
    auth: { mode: 'anonymous' },
    storage: { path: 'registry.db' },
    audit: { enabled: true, ...audit },
    ...extra,
  };
  return folder.serve(await folder.write('registry.yaml', JSON.stringify(config)));
}

const linesOf = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

/** What an administrator and a reader do in a day, each once: method, path, status, body. */
const DAY: readonly (readonly [method: string, path: string, status: number, body?: object])[] = [
  ['GET', '/v1/sources', 200],
  [
    'PUT',
    '/v1/sources/extra',
    201,
    { file: { data: '[{"name":"io.b/two","version":"1","description":"two"}]' } },
  ],
  [
    'PUT',
    '/v1/sources/extra',
    200,
    { file: { data: '[{"name":"io.b/two","version":"2","description":"two"}]' } },
  ],
  ['PUT', '/v1/sources/bad', 400, { api: { endpoint: 'ftp://ann:hunter2@up.example/', token: 'topsecret' } }],
  ['GET', '/v1/sources/extra', 200],
  ['GET', '/v1/sources/extra/entries', 200],
  ['POST', '/v1/sources/files/sync', 202],
  ['GET', '/v1/sources/files/sync', 200],
  ['GET', '/v1/registries', 200],
  ['PUT', '/v1/registries/team', 201, { sources: ['extra'] }],
  ['PUT', '/v1/registries/team', 200, { sources: ['extra', 'own'] }],
  ['GET', '/v1/registries/team', 200],
  ['GET', '/v1/registries/team/entries', 200],
  [
    'POST',
    '/v1/entries',
    201,
    { claims: { team: 'a' }, server: { name: 'io.c/x', version: '1.0.0', description: 'x' } },
  ],
  [
    'POST',
    '/v1/entries',
    201,
    { skill: { namespace: 'io.c', name: 'skill', version: '1.0.0', description: 'x' } },
  ],
  [
    'POST',
    '/v1/entries',
    201,
    { plugin: { namespace: 'io.c', name: 'plug', version: '1.0.0', description: 'x' } },
  ],
  [
    'POST',
    '/all/v0.1/publish',
    201,
    { name: 'mine', version: '1.0.0', url: 'https://u:s3cret@mine.example/mcp' },
  ],
  ['POST', '/all/v0/validate', 200, { name: 'io.d/official', version: '1.0.0', description: 'x' }],
  ['POST', '/all/v0/publish', 200, { name: 'io.d/official', version: '1.0.0', description: 'x' }],
  ['PATCH', '/all/v0/servers/io.d%2Fofficial/status', 200, { status: 'deprecated' }],
  ['GET', '/v1/entries/server/io.c%2Fx/claims', 200],
  ['PUT', '/v1/entries/server/io.c%2Fx/claims', 204, { claims: { team: 'b' } }],
  ['DELETE', '/v1/entries/server/io.c%2Fx/versions/1.0.0', 204],
  ['GET', '/v1/me', 200],
  ['GET', '/v1/explain?registry=all', 200],
  ['GET', '/all/v0.1/servers', 200],
  ['GET', '/all/v0.1/servers/mine/versions', 200],
  ['GET', '/all/v0.1/servers/mine/versions/latest', 200],
  ...['skill', 'plugin'].flatMap((kind) => {
    const base = `/all/v0.1/x/dev.skep/${kind}s`;
    const one = `${base}/io.c/${kind === 'skill' ? 'skill' : 'plug'}`;
    return [base, one, `${one}/versions`, `${one}/versions/1.0.0`].map((at) => ['GET', at, 200] as const);
  }),
  ['DELETE', '/v1/registries/team', 204],
  ['DELETE', '/v1/sources/extra', 204],
];

test('every event occurs with its outcome, and no line holds a secret', async () => {
  const oauth = {
    providers: [{ name: 'test', issuerUrl: idp.issuer, audience: AUDIENCE, allowPrivateIP: true }],
  };
  const registry = await serve(
    { logFile: 'audit.log', includeRequestData: true },
    { auth: { mode: 'oauth', oauth } },
  );
  const token = await idp.token({ sub: 'ann' });
  const statuses: unknown[] = [];
  for (const [method, at, , body] of DAY) {
    const response = await fetch(`${registry.open}${at}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    statuses.push([method, at, response.status]);
    await response.text();
  }
  expect(statuses).toEqual(DAY.map(([method, at, status]) => [method, at, status]));
  const unknown = await fetch(`${registry.open}/v1/me?token=hunter2`, {
    headers: { authorization: 'Bearer topsecret' },
  });
  expect(unknown.status).toBe(401);
  await registry.stop();

  const text = await readFile(path.join(folder.path, 'audit.log'), 'utf8');
  for (const secret of [...SECRETS, token]) expect(text).not.toContain(secret);
  const lines = linesOf(text);
  // No configuration is loaded again here; config-difference.test.ts proves what a reload writes.
  const expected = AUDIT_EVENTS.filter((type) => type !== 'config.reload');
  expect(new Set(lines.map(({ type }) => type))).toEqual(new Set(expected));
  const requests = lines.filter(({ subjects }) => subjects['identity'] !== 'system');
  expect(
    requests.slice(0, -1).map(({ target, metadata }) => [target['method'], metadata.extra['status']]),
  ).toEqual(DAY.map(([method, , status]) => [method, status]));
  expect(requests.every(({ subjects }, index) => index === DAY.length || subjects['sub'] === 'ann')).toBe(
    true,
  );
  expect(requests.at(-1)).toMatchObject({
    type: 'auth.unauthenticated',
    outcome: 'denied',
    subjects: { identity: 'unknown' },
  });
  expect(requests.find(({ metadata }) => metadata.extra['status'] === 400)).toMatchObject({
    type: 'source.update',
    outcome: 'failure',
  });
  expect(requests.find(({ type }) => type === 'entry.claims.update')).toMatchObject({
    target: { entry_type: 'server', resource_name: 'io.c/x' },
    metadata: { extra: { claims_before: { team: 'a' }, claims_after: { team: 'b' } } },
  });
});

/** Asks until the program has said so in its log. */
async function askedUntil(registry: Running, message: string): Promise<void> {
  while (!registry.stderr().includes(message)) {
    expect((await fetch(`${registry.open}/all/v0.1/servers`)).status).toBe(200);
    await delay(5);
  }
}

const LOST = 'audit events could not be written';
const METRICS = { telemetry: { enabled: true, endpoint: 'http://127.0.0.1:9', metrics: { enabled: true } } };
const LOST_METRIC = /^skep_registry_audit_lost_total\S* [1-9]/mu;

test('a reader of standard output that leaves costs lines, counted and logged, and no request', async () => {
  const registry = await serve({}, METRICS);
  registry.child.stdout?.destroy();
  await askedUntil(registry, LOST);
  expect((await fetch(`${registry.open}/all/v0.1/servers`)).status).toBe(200);
  expect(await (await fetch(`${registry.internal}/metrics`)).text()).toMatch(LOST_METRIC);
  expect((await registry.stop()).code).toBe(0);
});

test.skipIf(process.platform !== 'linux')('so does a full disk', async () => {
  expect((await stat('/dev/full')).isCharacterDevice()).toBe(true);
  const registry = await serve({ logFile: '/dev/full' }, METRICS);
  await askedUntil(registry, LOST);
  expect(await (await fetch(`${registry.internal}/metrics`)).text()).toMatch(LOST_METRIC);
  expect((await registry.stop()).code).toBe(0);
});
