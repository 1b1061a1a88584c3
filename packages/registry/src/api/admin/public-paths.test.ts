import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AdminUnderTest, adminUnderTest, type CallerName } from './admin.fixture.ts';

type Row = readonly [
  rule: string,
  as: CallerName,
  method: 'GET' | 'POST' | 'DELETE',
  url: string,
  body: object | undefined,
  status: number,
];

describe('a public path', () => {
  const document = { name: 'io.acme/stranger', version: '1', description: 'd' };
  const base = '/registry/open/v0.1';
  let admin: AdminUnderTest;
  beforeAll(async () => {
    admin = await adminUnderTest({ mode: 'auth-only', publicPaths: ['/registry/open'] });
  });

  afterAll(() => admin.close());

  test.each<Row>([
    ['lets strangers read', 'nobody', 'GET', `${base}/servers`, undefined, 200],
    ['lets nobody publish', 'nobody', 'POST', `${base}/publish`, document, 401],
    ['is read by its own words only', 'nobody', 'GET', '/open/v0.1/servers', undefined, 401],
    ['opens no neighbour', 'nobody', 'GET', '/registry/openx/v0.1/servers', undefined, 401],
    ['does not hinder those who sign in', 'outsider', 'POST', `${base}/publish`, document, 201],
    ['lets nobody delete', 'nobody', 'DELETE', `${base}/servers/io.acme/stranger/versions/1`, undefined, 401],
  ])('%s', async (...[, as, method, url, body, status]) => {
    const before = await admin.state();
    const response = await admin.send(method, url, { as, ...(body === undefined ? {} : { body }) });
    expect(response.statusCode).toBe(status);
    if (status >= 400) expect(await admin.state()).toBe(before);
  });
});
