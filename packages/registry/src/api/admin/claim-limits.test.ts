import { describe, expect, test } from 'vitest';
import { adminUnderTest } from './admin.fixture.ts';

// `limits.claims` at every door that takes claims.

const server = (claims: object) => ({
  server: { name: 'io.acme/one', version: '1.0.0', description: 'x' },
  claims,
});

const DOORS: readonly [name: string, ...Door][] = [
  ['a source', 'PUT', '/v1/sources/new', (claims) => ({ file: { data: CATALOGUE }, claims })],
  ['a registry', 'PUT', '/v1/registries/new', (claims) => ({ sources: ['internal'], claims })],
  ['an entry', 'POST', '/v1/entries', server],
  ['an entry at the door of a registry', 'POST', '/registry/open/v0.1/publish', server],
  ['the claims of an entry', 'PUT', '/v1/entries/server/io.acme%2Fplain/claims', (claims) => ({ claims })],
];

type Door = [method: 'PUT' | 'POST', url: string, body: (claims: object) => object];

const CATALOGUE = JSON.stringify([{ name: 'io.acme/x', version: '1.0.0', description: 'x' }]);

const NARROW = { keys: 2, valuesPerKey: 2, bytesPerText: 4 };
const WIDE = { keys: 100, valuesPerKey: 300, bytesPerText: 2000 };

const many = (length: number): string[] => Array.from({ length }, (_, index) => String(index));
const keys = (length: number): object => Object.fromEntries(many(length).map((key) => [key, 'v']));

describe.each(DOORS)('the claims of a request for %s', (_name, method, url, body) => {
  test.each<[limits: typeof NARROW, claims: object, problem: string | undefined]>([
    [NARROW, keys(2), undefined],
    [NARROW, keys(3), 'claims have 3 keys, at most 2 are allowed'],
    [NARROW, { k: ['a', 'b'] }, undefined],
    [NARROW, { k: ['a', 'b', 'c'] }, 'array has 3 elements, at most 2 are allowed'],
    [NARROW, { k: 'four' }, undefined],
    [NARROW, { k: 'fives' }, 'claim "k": value is too long'],
    [NARROW, { fives: 'k' }, 'claim "fives": key is too long'],
    [WIDE, keys(100), undefined],
    [WIDE, { k: many(300) }, undefined],
    [WIDE, { k: 'x'.repeat(2000) }, undefined],
  ])('are held to the limits (row %#)', async (claims, given, problem) => {
    const admin = await adminUnderTest({ limits: { claims } });
    const plain = { server: { name: 'io.acme/plain', version: '1.0.0', description: 'x' } };
    expect((await admin.send('POST', '/v1/entries', { body: plain })).statusCode).toBe(201);
    const before = await admin.state();
    const response = await admin.send(method, url, { body: body(given) });
    if (problem === undefined) {
      expect(response.statusCode).toBeLessThan(300);
      expect(await admin.state()).not.toBe(before);
    } else {
      expect([response.statusCode, response.body]).toEqual([400, expect.any(String)]);
      expect(response.json().error).toContain(problem);
      expect(await admin.state()).toBe(before);
    }
    await admin.close();
  });
});
