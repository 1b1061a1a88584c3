import { hash } from 'node:crypto';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { describe, expect, test } from 'vitest';
import { TokenCache } from './cache.ts';
import type { TokenOutcome } from './outcome.ts';
import { NOW } from './tokens.fixture.ts';
import { tokenIdentity } from './identity.ts';

type Accepted = Extract<TokenOutcome, { kind: 'identity' }>;
const outcome = (expiresAt: number): Accepted => ({
  kind: 'identity',
  identity: tokenIdentity({}, 'a'),
  expiresAt,
});

describe('the token cache', () => {
  test('gives back the very same identity', () => {
    const cache = new TokenCache({ now: () => NOW, capMs: 60_000, maxCharacters: 1_000 });
    const accepted = outcome(NOW + 10_000);
    cache.set('token', accepted);
    expect(cache.get('token')).toBe(accepted);
    expect(cache.get('Token')).toBeUndefined();
  });

  test.each([
    ['the token expires', NOW + 10_000, 10_000],
    ['the cap passes', NOW + 3_600_000, 60_000],
  ])('forgets when %s', (_name, expiresAt, after) => {
    const clock = manualClock();
    const cache = new TokenCache({ now: clock.now, capMs: 60_000, maxCharacters: 1_000 });
    cache.set('token', outcome(expiresAt));
    clock.pass(after - 1);
    expect(cache.get('token')).toBeDefined();
    clock.pass(1);
    expect(cache.get('token')).toBeUndefined();
  });

  test('holds so many characters and drops the least used', () => {
    const cache = new TokenCache({ now: () => NOW, capMs: 60_000, maxCharacters: 30 });
    for (const token of ['a'.repeat(10), 'b'.repeat(10), 'c'.repeat(10)])
      cache.set(token, outcome(NOW + 1_000));
    cache.get('a'.repeat(10));
    cache.set('d'.repeat(10), outcome(NOW + 1_000));
    expect(cache.get('b'.repeat(10))).toBeUndefined();
    expect(cache.get('a'.repeat(10))).toBeDefined();
  });

  test('answers a hit in hardly more time than the hash of the token takes', () => {
    const cache = new TokenCache({ now: Date.now, capMs: 60_000, maxCharacters: 1_000_000 });
    const tokens = Array.from({ length: 100 }, (_, index) => `${index}${'x'.repeat(900)}`);
    for (const token of tokens) cache.set(token, outcome(Number.MAX_SAFE_INTEGER));
    const fastest = (look: (token: string) => unknown): number => {
      const rounds = Array.from({ length: 20 }, () => {
        const start = performance.now();
        for (let hit = 0; hit < 500; hit += 1) look(tokens[hit % 100] ?? '');
        return performance.now() - start;
      });
      return Math.min(...rounds);
    };
    const bare = fastest((token) => hash('sha256', token, 'base64'));
    expect(fastest((token) => cache.get(token))).toBeLessThan(4 * bare);
  });
});
