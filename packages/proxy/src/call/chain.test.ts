import { expect, test } from 'vitest';
import { CHAIN, chain, compose, looksInside, type Facet, type Step, type Steps } from './chain.ts';
import type { Call } from './call.ts';

const pass: Step = (_call, next) => next();

const ALWAYS = ['recovery', 'origin', 'body-limit', 'auth', 'mcp-parser', 'transport'] as const;
const OPTIONAL = [
  'audit',
  'client-token',
  'tool-filter',
  'tool-call-filter',
  'telemetry',
  'rate-limit',
  'mutating-webhook',
  'validating-webhook',
  'authorization',
  'outgoing-token',
] as const;

/** docs/behaviour/proxy.md#the-chain, typed once more so that a moved row is noticed. */
const ORDER = [
  'recovery',
  'origin',
  'body-limit',
  'audit',
  'auth',
  'client-token',
  'tool-filter',
  'tool-call-filter',
  'mcp-parser',
  'telemetry',
  'rate-limit',
  'mutating-webhook',
  'validating-webhook',
  'authorization',
  'outgoing-token',
  'transport',
];

const withSteps = (optional: readonly string[]): Steps => {
  const required: Steps = {
    recovery: pass,
    origin: pass,
    'body-limit': pass,
    auth: pass,
    'mcp-parser': pass,
    transport: pass,
  };
  return { ...required, ...Object.fromEntries(optional.map((name) => [name, pass])) };
};

/** Each set of those that come with settings. */
const SUBSETS = Array.from({ length: 2 ** OPTIONAL.length }, (_, bits) =>
  OPTIONAL.filter((_name, at) => (bits >> at) & 1),
);

test('every subset of optional steps keeps the order, and every step finds what it reads', () => {
  expect(CHAIN.map(({ name }) => name)).toEqual(ORDER);
  expect([...ALWAYS, ...OPTIONAL].toSorted()).toEqual(ORDER.toSorted());
  for (const optional of SUBSETS) {
    const links = chain(withSteps(optional));
    const wanted = new Set<string>([...ALWAYS, ...optional]);
    expect(links.map(({ name }) => name)).toEqual(ORDER.filter((name) => wanted.has(name)));
    const written = new Set<Facet>(['head']);
    for (const { name, reads, writes } of links) {
      expect(
        reads.filter((facet) => !written.has(facet)),
        name,
      ).toEqual([]);
      for (const facet of writes) written.add(facet);
    }
  }
});

test('runs outermost first and comes back innermost first', async () => {
  const seen: string[] = [];
  const noting =
    (name: string): Step =>
    async (_call, next) => {
      seen.push(`${name} in`);
      await next();
      seen.push(`${name} out`);
    };
  const run = compose([{ run: noting('a') }, { run: noting('b') }]);
  await run({} as Call);
  expect(seen).toEqual(['a in', 'b in', 'b out', 'a out']);
});

test('a step that answers and does not go on keeps the rest from running', async () => {
  let reached = false;
  const run = compose([
    { run: () => Promise.resolve() },
    {
      run: () => {
        reached = true;
        return Promise.resolve();
      },
    },
  ]);
  await run({} as Call);
  expect(reached).toBe(false);
});

test('a step that hears answers has messages spoken only where answers come on another stream', () => {
  expect(looksInside({ audit: pass, telemetry: pass }, 'in-place')).toBe(false);
  expect(looksInside({ audit: pass }, 'elsewhere')).toBe(true);
  expect(looksInside({ 'outgoing-token': pass }, 'elsewhere')).toBe(false);
  expect(looksInside({ 'tool-filter': pass }, 'in-place')).toBe(true);
});
