import { CLAIM_LIMITS } from '@skep/auth/claims/claims.ts';
import { expect, test } from 'vitest';
import { exported } from './contract.ts';
import { OBJECT_KINDS } from './object-kinds.ts';
import { Room } from './room.ts';
import { ScopeContents } from './scope-contents.ts';

const [kind] = OBJECT_KINDS.filter((one) => one.kind === 'Service');

function contentsOf(most: number, room = new Room(most, new Set())): ScopeContents {
  if (kind === undefined) throw new TypeError('no kind');
  const limits = { claims: CLAIM_LIMITS, maxDocumentSize: 10_000, maxCatalogueSize: most };
  return new ScopeContents({ kind, namespace: undefined }, limits, room);
}

function list(contents: ScopeContents, ...names: readonly string[]): string[] {
  const listing = contents.listing();
  listing.add(names.map((name) => object(name)));
  listing.finish();
  return [...contents.derived.keys()];
}

const object = (name: string, description = name, claims = '{"org":"acme"}'): object => ({
  metadata: {
    namespace: 'one',
    name,
    annotations: exported('Service', `one/${name}`, {
      'skep.dev/registry-description': description,
      'skep.dev/authz-claims': claims,
    }).annotations,
  },
});

test('holds what there is room for, and room that is given back', () => {
  const contents = contentsOf(1_000);
  expect(contents.put(object('a'))).toBe(true);
  expect(contents.put(object('a'))).toBe(false);
  expect(contents.put(object('b'))).toBe(true);
  expect(contents.excess).toBeUndefined();
  expect(contents.put(object('c'))).toBe(true);
  expect([...contents.derived.keys()]).toEqual(['one/a', 'one/b']);
  expect(contents.excess).toBe('the source describes more than 1000 bytes; some objects are left out');
  expect(contents.remove(object('a'))).toBe(true);
  expect(contents.put(object('c'))).toBe(true);
  expect([...contents.derived.keys()]).toEqual(['one/b', 'one/c']);
});

test('keeps what was shown when others come before it, in a list and after a restart', () => {
  const contents = contentsOf(1_000);
  expect(list(contents, 'm', 'n')).toEqual(['one/m', 'one/n']);
  expect(list(contents, 'a', 'b', 'm', 'n')).toEqual(['one/m', 'one/n']);
  expect(list(contents, 'a', 'n')).toEqual(['one/a', 'one/n']);
  const restarted = contentsOf(1_000, new Room(1_000, new Set(['dev.skep.k8s.one/m'])));
  expect(list(restarted, 'a', 'b', 'm')).toEqual(['one/a', 'one/m']);
});

test('shares its room with the other parts of the source, and gives back what a list that failed took', () => {
  const room = new Room(1_000, new Set());
  const [contents, others] = [contentsOf(1_000, room), contentsOf(1_000, room)];
  const failing = contents.listing();
  failing.add([object('a'), object('b')]);
  expect(list(others, 'x')).toEqual([]);
  failing.abandon();
  expect(list(others, 'x', 'y')).toEqual(['one/x', 'one/y']);
  expect(list(contents, 'a')).toEqual([]);
  expect(list(others)).toEqual([]);
  expect(list(contents, 'a', 'b')).toEqual(['one/a', 'one/b']);
  expect(list(contents, 'a', 'b')).toEqual(['one/a', 'one/b']);
});

test('shows no earlier state of what has no room any more', () => {
  const contents = contentsOf(1_000);
  contents.put(object('a'));
  expect(contents.put(object('a', 'x'.repeat(4_000), '{"org":"other"}'))).toBe(true);
  expect(contents.derived.size).toBe(0);
});
