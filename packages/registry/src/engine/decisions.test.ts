import { parseClaims, type Claims } from '@skep/auth/claims/claims.ts';
import { canonicalClaims } from '@skep/auth/claims/same.ts';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { authorityOf, resolveSwitches, type Authority } from '../access/authority.ts';
import { decideVisibility } from '../access/visibility.ts';
import { snapshotOf, storedBundle, storedServer } from '../api/snapshot.fixture.ts';
import type { StoredEntry } from '../store/rows.ts';
import { compareBytes } from '../store/reads/byte-order.ts';
import { decodeCursor } from './entry-key.ts';
import { entryKey } from './entry-key.ts';
import type { Page } from './kept-pages.ts';
import { entryOf, listPage, type PageQuery, type Reader } from './page.ts';

// The engine looks up numbers; what it serves must be what the pure decisions say, entry by entry.

const VALUES = ['a', 'b', 'A', '', '5', 'true'];
const KEYS = ['org', 'team', '__proto__', 'constructor', 'https://x.example/role'];
const value = fc.oneof(fc.constantFrom(...VALUES), fc.array(fc.constantFrom(...VALUES), { maxLength: 3 }));
const claimsOf = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<Record<string, T>> =>
  fc
    .array(fc.tuple(fc.constantFrom(...KEYS), values), { maxLength: 3 })
    .map((pairs) => Object.fromEntries(pairs));
const resourceClaims: fc.Arbitrary<Claims> = claimsOf(value).map((claims) => parseClaims(claims));
const tokenClaims = claimsOf(fc.oneof(value, fc.constantFrom(5, true, null, { a: 1 }, ['a', 5])));

const entry = fc
  .record({ name: fc.constantFrom('t', 'u', 'v', 'w', 'x', 'y', 'z'), claims: resourceClaims })
  .chain(({ name, claims }) =>
    fc.constantFrom<StoredEntry>(
      storedServer(`ns/${name}`, ['1.0.0', '2.0.0'], { claims: canonicalClaims(claims) }),
      storedBundle('skill', ['io.a', name], ['1.0.0', '2.0.0'], { claims: canonicalClaims(claims) }),
      storedBundle('skill', ['io.a-b', name], ['1.0.0'], { claims: canonicalClaims(claims) }),
    ),
  );
const identity = ({ kind, namespace, name }: StoredEntry): string => JSON.stringify([kind, namespace, name]);
const source = fc.uniqueArray(entry, { selector: identity, maxLength: 12 });

const authority: fc.Arbitrary<Authority> = fc
  .record({ claims: tokenClaims, strict: fc.boolean(), admin: fc.boolean() })
  .map(({ claims, strict, admin }) =>
    authorityOf(
      {
        kind: 'full',
        rules: { superAdmin: [parseClaims({ boss: 'yes' })] },
        switches: resolveSwitches(strict ? { preset: 'strict' } : {}),
      },
      {
        issuer: 'i',
        subject: 's',
        name: '',
        email: '',
        groups: [],
        claims: { ...claims, iss: 'i', exp: 1, ...(admin ? { boss: 'yes' } : {}) },
      },
    ),
  );

type Kind = 'server' | 'skill';

/** The rules written naively: drop what the caller may not see, then shadow, then order. */
function expected(sources: readonly (readonly StoredEntry[])[], caller: Authority, kind: Kind): string[] {
  const winners = new Map<string, StoredEntry>();
  for (const one of sources.flat()) {
    const sees = decideVisibility(caller, one.claims).allowed;
    if (one.kind === kind && sees && !winners.has(identity(one))) winners.set(identity(one), one);
  }
  return [...winners.values()]
    .toSorted((a, b) => compareBytes(a.namespace, b.namespace) || compareBytes(a.name, b.name))
    .flatMap(({ namespace, name, versions }) =>
      versions.map(({ version }) => `${namespace} ${name} ${version}`),
    );
}

interface Item {
  readonly namespace?: string;
  readonly name: string;
  readonly version: string;
}

function pageOf(reader: Reader, query: PageQuery): Page {
  const page = listPage(reader, query);
  if (page instanceof Promise) throw new Error('a small page comes at once');
  return page;
}

/** Walks all pages. */
function served(reader: Reader, limit: number): string[] {
  const items: string[] = [];
  let query: PageQuery = { limit };
  for (;;) {
    const page: Record<string, (Item & { server?: Item })[]> & { metadata: { nextCursor?: string } } =
      JSON.parse(Buffer.concat(pageOf(reader, query).pieces).toString());
    for (const item of page['servers'] ?? page['skills'] ?? []) {
      const { namespace = '', name, version } = item.server ?? item;
      items.push(`${namespace} ${name} ${version}`);
    }
    const { nextCursor } = page.metadata;
    if (nextCursor === undefined) return items;
    query = { limit, after: decodeCursor(nextCursor) };
  }
}

/** Asks for every entry there is by its name, as reads of one entry do. */
function found(reader: Reader, entries: readonly StoredEntry[]): Set<string> {
  const items = entries
    .filter(({ kind }) => kind === reader.kind)
    .flatMap(({ namespace, name }) =>
      (entryOf(reader, entryKey({ namespace, name }))?.versions ?? []).map(
        ({ version }) => `${namespace} ${name} ${version}`,
      ),
    );
  return new Set(items);
}

describe('what the engine serves', () => {
  test('is what the pure decisions allow, for 100,000 pairs of caller and entry', () => {
    let pairs = 0;
    fc.assert(
      fc.property(
        fc.array(source, { minLength: 1, maxLength: 3 }),
        fc.array(authority, { minLength: 8, maxLength: 16 }),
        fc.integer({ min: 1, max: 9 }),
        (lists, callers, limit) => {
          const snapshot = snapshotOf(Object.fromEntries(lists.map((list, index) => [`s${index}`, list])));
          const view = snapshot.registries.get('all');
          if (view === undefined) throw new Error('no view');
          for (const caller of callers) {
            const visibility = snapshot.visibility(caller);
            pairs += lists.flat().length;
            for (const kind of ['server', 'skill'] as const) {
              const reader = { kind, view, visibility, pages: snapshot.pages };
              const shown = expected(lists, caller, kind);
              expect(served(reader, limit)).toEqual(shown);
              expect(found(reader, lists.flat())).toEqual(new Set(shown));
            }
          }
        },
      ),
      { numRuns: 1000 },
    );
    expect(pairs).toBeGreaterThan(100_000);
  }, 60_000);

  test('has equal fingerprints exactly for callers who see the same claim sets, whatever order they came in', () => {
    fc.assert(
      fc.property(fc.array(resourceClaims, { maxLength: 6 }), authority, authority, (sets, one, other) => {
        const texts = [...new Set(sets.map(canonicalClaims))];
        const entries = texts.map((claims, index) => storedServer(`n/${index}`, ['1'], { claims }));
        const there = snapshotOf({ s: entries });
        const back = snapshotOf({
          s: entries.map((item, index) => ({ ...item, name: `n/${9 - index}` })),
        });
        const sees = (caller: Authority): string[] =>
          texts.filter((claims) => decideVisibility(caller, claims).allowed).toSorted();
        const same = JSON.stringify(sees(one)) === JSON.stringify(sees(other));
        expect(there.visibility(one).fingerprint === there.visibility(other).fingerprint).toBe(same);
        expect(there.visibility(one).fingerprint).toBe(back.visibility(one).fingerprint);
      }),
    );
  });
});
