import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { ANONYMOUS } from '../../access/authority.ts';
import { buildBlock, changedKeys, patchBlock } from '../../engine/block.ts';
import { entryOf } from '../../engine/entry.fixture.ts';
import { ReadEngine } from '../../engine/read-engine.ts';
import { sharedPage } from '../reads/read-routes.ts';
import { CachedReads } from './cached-reads.ts';
import type { Prepared } from './request.ts';
import { snapshotOf, storedServer } from '../snapshot.fixture.ts';

const MEBI = 1024 * 1024;
const snapshot = snapshotOf({ main: [storedServer('a/a')] });

function prepared(pieces: readonly Buffer[]): Prepared {
  return { status: 200, etag: '"x"', headers: [], withBody: [], pieces, length: 1 };
}

/** How many of 200 reads are still there. */
function keptOf(pieceOf: (index: number) => Buffer): number {
  const reads = new CachedReads();
  const asked = (index: number) => ({
    row: undefined,
    authority: ANONYMOUS,
    url: `/all/v0.1/servers?cursor=${index}`,
    params: {},
  });
  for (let index = 0; index < 200; index += 1) {
    reads.keep(snapshot, asked(index), prepared([pieceOf(index)]));
  }
  const all = Array.from({ length: 200 }, (_, index) => reads.find(snapshot, asked(index)));
  return all.filter((read) => read !== undefined).length;
}

test('keeps no more than so many bytes of pages that were copied together, however many are asked for', () => {
  expect(keptOf(() => Buffer.alloc(MEBI))).toBeLessThan(70);
});

test('counts a copy once that many callers share, and nothing of what lies in the snapshot', () => {
  const shared = Buffer.alloc(MEBI);
  expect(keptOf(() => shared)).toBe(200);
  const block = Buffer.alloc(2 * MEBI);
  expect(keptOf(() => block.subarray(0, MEBI))).toBe(200);
});

test('keeps no bytes of entries that were replaced, however often one is changed and its list read', async () => {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect !== 'function') throw new Error('no garbage collection');
  const engine = new ReadEngine([{ name: 'all', sources: ['s'], claims: '' }]);
  const first = ['a/a', 'z/z'].map((name) => entryOf('server', name, 'first'));
  engine.update({ blocks: [buildBlock('s', first)] });
  const reads = new CachedReads();
  const replaced: WeakRef<Buffer>[] = [];
  const round = (number: number): void => {
    const now = entryOf('server', 'a/a', `${number} ${'x'.repeat(50_000)}`);
    const [block] = engine.blocks().values();
    if (block === undefined) throw new Error('nothing to change');
    engine.update({
      blocks: [patchBlock(block, [now], [now])],
      changed: new Map([['s', changedKeys([now])]]),
    });
    const snapshot = engine.current();
    const groups = [...(snapshot.registries.get('all')?.groups.server.all ?? [])];
    replaced.push(...groups.slice(0, 1).map(({ candidates }) => new WeakRef(candidates[0].entry.bytes)));
    const visibility = snapshot.visibility(ANONYMOUS);
    const { registries, pages } = snapshot;
    const all = registries.get('all');
    if (all === undefined) throw new Error('no registry');
    const query = { limit: 1, search: 'x'.repeat(1 + (number % 50)) };
    const reader = { kind: 'server', view: all, visibility, pages } as const;
    const page = sharedPage(reader, query, { destroyed: false });
    if (page instanceof Promise) throw new Error('a small page comes at once');
    const asked = { row: undefined, authority: ANONYMOUS, url: `/${number}`, params: { registry: 'all' } };
    reads.keep(snapshot, asked, prepared(page.pieces));
  };
  for (let number = 0; number < 100; number += 1) round(number);
  const left = async (): Promise<number> => {
    // What was looked at in a turn of the event loop stays to its end.
    await setImmediate();
    collect();
    return replaced.filter((bytes) => bytes.deref() !== undefined).length;
  };
  await expect.poll(left).toBeLessThan(4);
});
