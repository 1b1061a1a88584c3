import { expect, it } from 'vitest';
import { ANONYMOUS } from '../access/authority.ts';
import { KeptReads, type Read } from './kept-reads.ts';
import { READ_ROUTES } from './routes.ts';
import { snapshotOf, storedServer } from './snapshot.fixture.ts';

const MEBI = 1024 * 1024;
const snapshot = snapshotOf({ main: [storedServer('a/a')] });
const [route] = READ_ROUTES;

function readOf(piece: Buffer): Read {
  if (route === undefined) throw new Error('no route');
  const [etag, length] = ['"x"', piece.length];
  return { route, pattern: '/', path: {}, etag, headers: [], withBody: [], pieces: [piece], length };
}

/** How many of 200 reads are still there. */
function keptOf(pieceOf: (index: number) => Buffer): number {
  const reads = new KeptReads();
  const target = (index: number): string => `/all/v0.1/servers?cursor=${String(index)}`;
  for (let index = 0; index < 200; index += 1) {
    reads.keep(snapshot, ANONYMOUS, { target: target(index), read: readOf(pieceOf(index)) });
  }
  const all = Array.from({ length: 200 }, (_, index) => reads.find(snapshot, ANONYMOUS, target(index)));
  return all.filter((read) => read !== undefined).length;
}

it('keeps no more than so many bytes of pages that were copied together, however many are asked for', () => {
  expect(keptOf(() => Buffer.alloc(MEBI))).toBeLessThan(70);
});

it('counts a copy once that many callers share, and nothing of what lies in the snapshot', () => {
  const shared = Buffer.alloc(MEBI);
  expect(keptOf(() => shared)).toBe(200);
  const block = Buffer.alloc(2 * MEBI);
  expect(keptOf(() => block.subarray(0, MEBI))).toBe(200);
});
