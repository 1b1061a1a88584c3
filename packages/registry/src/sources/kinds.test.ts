import { expect, test } from 'vitest';
import { z } from 'zod';
import { isWatched, SOURCE_KINDS } from '../store/rows.ts';
import { KINDS } from './kinds.ts';
import { decodeSource } from './open-source.ts';
import { KIND_LIST, parseSourceBody, sourceMembers, sourceProblems } from './source-body.ts';
import { CLAIM_LIMITS } from '@skep/auth/claims/claims.ts';

test('messages name the kinds in the order of the table', () => {
  expect(KIND_LIST).toBe('git, api, file, managed, or kubernetes');
});

/** A block of each kind with nothing but what it needs. */
const BLOCKS = {
  git: { repository: 'https://git.example/c.git' },
  api: { endpoint: 'https://registry.example' },
  file: { url: 'https://files.example/c.json' },
  managed: {},
  kubernetes: {},
} as const;

test.each(SOURCE_KINDS)('the row of %s declares everything that is asked about a source', (kind) => {
  const row = KINDS[kind];
  expect(row.brief).not.toBe('');
  expect(Object.keys(sourceMembers)).toContain(kind);
  expect(z.toJSONSchema(row.shape, { io: 'input' })).toMatchObject({
    type: 'object',
    additionalProperties: false,
  });
  const named = [...(row.relativePaths ?? []), ...(row.exactlyOne ?? [])];
  expect(Object.keys(row.shape.shape)).toEqual(expect.arrayContaining(named));
});

test.each(SOURCE_KINDS)('a source of kind %s is checked, kept and decoded by its row', (kind) => {
  const source = { [kind]: BLOCKS[kind], syncPolicy: { interval: '1m' } };
  expect([...sourceProblems(source, [], 'file')]).toEqual([]);
  const settings = parseSourceBody(source, CLAIM_LIMITS);
  expect(settings).toMatchObject({ kind, config: JSON.stringify(BLOCKS[kind]) });
  const decoded = decodeSource(settings);
  expect(decoded.fault).toBeUndefined();
  // What comes by synchronisation is opened, what is watched is followed, and nothing else is.
  expect(decoded.open !== undefined).toBe(settings.interval !== null);
  expect(decoded.watch !== undefined).toBe(isWatched(kind));
});

test.each(SOURCE_KINDS)(
  'a block of kind %s with a member that nobody knows is refused, and decodes to a fault',
  (kind) => {
    const block = { ...BLOCKS[kind], nonsense: 1 };
    expect(() => parseSourceBody({ [kind]: block, syncPolicy: { interval: '1m' } }, CLAIM_LIMITS)).toThrow(
      `${kind}.nonsense: unknown key "nonsense"`,
    );
    const stored = { kind, config: JSON.stringify(block), format: null, filter: null };
    expect(decodeSource(stored).fault).toContain('nonsense: unknown key');
  },
);
