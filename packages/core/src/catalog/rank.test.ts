import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { newestPerName } from './find.ts';
import { readServersQuickly } from './quick-servers.ts';
import { rankServers } from './rank.ts';
import { starterServers } from './starter.ts';
import type { ServerEntry } from './entry.ts';

interface Said {
  readonly title?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly status?: string;
}

function server(name: string, { tags = [], status = 'active', ...said }: Said = {}): ServerEntry {
  const _meta = {
    'io.modelcontextprotocol.registry/publisher-provided': {
      'io.github.stacklok': { key: { tags, status } },
    },
  };
  const document = { name, version: '1', description: '', ...said, _meta };
  return { kind: 'server', name, version: '1', document, json: '' };
}

const names = (entries: readonly ServerEntry[], query: string): readonly string[] =>
  rankServers(entries, query).map(({ name }) => name);

test('entries that are written to take long to search take no longer than others', () => {
  // Each of these characters counts for 18 when it is folded.
  const long = '\uFDFA '.repeat(1000);
  const tags = Array.from({ length: 100 }, (_, at) => `${long.slice(0, 60)}${at}`);
  const slow = Array.from({ length: 2000 }, (_, at) =>
    server(`io.a/x${at}`, { title: long, description: long, tags }),
  );
  // As long as it takes is the time that a test may take.
  expect(names(slow, 'abce abcf abdg bbcd ccdd abxx abyy zzzz')).toEqual([]);
});

describe('rankServers', () => {
  test('goes by the short name, its parts, the title, tags and the description, in this order', () => {
    const best = [
      server('io.z/git'),
      server('io.z/git-mcp-server'),
      server('io.z/git-extras'),
      server('io.z/github'),
      server('io.z/legit'),
      server('io.a/x1', { title: 'All of Git' }),
      server('io.a/x2', { title: 'Digits' }),
      server('io.a/x3', { tags: ['git'] }),
      server('io.a/x4', { description: 'Speaks git.' }),
      server('io.a/x5', { description: 'Speaks gitolite' }),
    ];
    const hidden = [server('io.git/x6'), server('io.a/x7', { description: 'digital' })];
    const expected = best.map(({ name }) => name);
    expect(names([...hidden, ...best.toReversed()], 'git')).toEqual(expected);
  });

  test.each([
    ['io.github', []],
    ['example.com', []],
    ['io.acme', ['io.acme/one', 'io.acme/two']],
    ['acme/', ['io.acme/one', 'io.acme/two']],
    ['acme', []],
    ['IO.ACME/ONE', ['io.acme/one']],
  ])('the namespace is found only by a query with a dot or slash: %s', (query, expected) => {
    expect(names([server('io.acme/two'), server('io.acme/one'), server('io.other/three')], query)).toEqual(
      expected,
    );
  });

  test('what a publisher says of itself comes before what others say of it, behind the exact short name', () => {
    const entries = [
      server('io.a/stripe-tools'),
      server('com.stripe/mcp', { description: 'Payments by Stripe' }),
      server('com.stripe/other', { description: 'Something else' }),
      server('io.a/stripe'),
    ];
    expect(names(entries, 'stripe')).toEqual(['io.a/stripe', 'com.stripe/mcp', 'io.a/stripe-tools']);
  });

  test.each([
    ['postgers', ['io.a/postgres']],
    ['postgre', ['io.a/postgres']],
    ['Kuberntes', ['io.a/kubernetes']],
    ['tme', []],
    ['potsgersx', []],
  ])('forgives small typos where nothing has the word: %s', (query, expected) => {
    expect(names([server('io.a/postgres'), server('io.a/kubernetes'), server('io.a/time')], query)).toEqual(
      expected,
    );
  });

  test('every word has to be found, and words may be written together', () => {
    const entries = [
      server('io.a/sequential-thinking'),
      server('io.a/drive', { title: 'Google Drive' }),
      server('io.a/google'),
    ];
    expect(names(entries, 'google drive')).toEqual(['io.a/drive']);
    expect(names(entries, 'sequentialthinking')).toEqual(['io.a/sequential-thinking']);
    expect(names(entries, 'thinking MCP server')).toEqual(['io.a/sequential-thinking']);
  });

  test('deprecated servers come after their equals', () => {
    const entries = [server('io.a/git-mcp', { status: 'Deprecated' }), server('io.b/mcp-git')];
    expect(names(entries, 'git')).toEqual(['io.b/mcp-git', 'io.a/git-mcp']);
  });

  test('finds words of scripts without spaces, in any width and case', () => {
    expect(names([server('io.a/x', { description: '日本語の説明' })], '説明')).toEqual(['io.a/x']);
    expect(names([server('io.a/x', { title: 'ＧＩＴ' })], 'git')).toEqual(['io.a/x']);
  });

  test('long texts and queries are not read to their end', () => {
    const long = server('io.a/x', { title: 'a'.repeat(1e6), description: `${'b '.repeat(5e5)}needle` });
    expect(names([long], 'needle')).toEqual([]);
    expect(names([long], 'c '.repeat(1e5))).toEqual([]);
  });

  const part = fc.stringMatching(/^[a-c]{1,3}(?:-[a-c]{1,2})?$/);
  const entry = fc
    .record({
      namespace: fc.constantFrom('io.github.ab', 'com.abc', 'a.b'),
      short: part,
      title: fc.string({ maxLength: 12 }),
      description: fc.string({ unit: fc.constantFrom('a', 'b', 'c', ' ', '.'), maxLength: 20 }),
      tags: fc.array(part, { maxLength: 2 }),
    })
    .map(({ namespace, short, ...said }) => server(`${namespace}/${short}`, said));
  const catalogue = fc.uniqueArray(entry, { selector: ({ name }) => name, maxLength: 12 });
  const query = fc.oneof(part, fc.string({ maxLength: 12 }), fc.constantFrom('com.abc/', 'a b', 'abc ab'));

  test('is one order, whatever order the catalogue is in, and keeps it when servers are left out', () => {
    fc.assert(
      fc.property(catalogue, query, fc.infiniteStream(fc.boolean()), (entries, asked, stream) => {
        const ranked = rankServers(entries, asked);
        expect(new Set(ranked).size).toBe(ranked.length);
        expect(rankServers(entries.toReversed(), asked)).toEqual(ranked);
        const kept = ranked.filter(() => stream.next().value === true);
        expect(rankServers(kept, asked)).toEqual(kept);
      }),
    );
  });

  test('begins with the exact name, and then with the exact short name', () => {
    fc.assert(
      fc.property(catalogue, (entries) => {
        for (const { name } of entries) {
          expect(names(entries, name)[0]).toBe(name);
          const short = name.slice(name.indexOf('/') + 1);
          expect(names(entries, short)[0]?.endsWith(`/${short}`)).toBe(true);
        }
      }),
    );
  });
});

test.each([
  ['github', 'io.github.github/github-mcp-server'],
  ['files', 'io.github.modelcontextprotocol/filesystem'],
  ['time', 'io.github.modelcontextprotocol/time'],
])('the built-in catalogue answers %s with %s first', (query, first) => {
  expect(names(starterServers(), query)[0]).toBe(first);
});

/** The wanted server of each query; the first 15 are the names that people know best. */
const GOLDEN: readonly (readonly [query: string, wanted: string])[] = [
  ['github', 'io.github.github/github-mcp-server'],
  ['gitlab', 'com.gitlab/mcp'],
  ['slack', 'io.github.stevenvo/slack-mcp-server'],
  ['notion', 'com.notion/mcp'],
  ['stripe', 'com.stripe/mcp'],
  ['linear', 'app.linear/linear'],
  ['sentry', 'io.github.getsentry/sentry-mcp'],
  ['cloudflare', 'com.cloudflare.mcp/mcp'],
  ['context7', 'io.github.upstash/context7'],
  ['grafana', 'io.github.grafana/mcp-grafana'],
  ['terraform', 'io.github.hashicorp/terraform-mcp-server'],
  ['redis', 'io.github.redis/mcp-redis'],
  ['paypal', 'com.paypal.mcp/mcp'],
  ['chrome devtools', 'io.github.ChromeDevTools/chrome-devtools-mcp'],
  ['hugging face', 'co.huggingface/hf-mcp-server'],
  ['huggingface', 'co.huggingface/hf-mcp-server'],
  ['firecrawl', 'io.github.firecrawl/firecrawl-mcp-server'],
  ['postgres', 'ai.waystation/postgres'],
  ['playwright', 'io.github.dinesh-nalla-se/playwright-mcp'],
  ['filesystem', 'io.github.bytedance/mcp-server-filesystem'],
  ['jira', 'io.github.edrich13/mcp-jira-server'],
  ['google drive', 'io.github.domdomegg/google-drive-mcp'],
  ['youtube transcript', 'io.github.jkawamoto/mcp-youtube-transcript'],
  ['snyk', 'io.snyk/mcp'],
  ['stack overflow', 'com.stackoverflow.mcp/mcp'],
  ['mapbox', 'io.github.mapbox/mcp-server'],
  ['new relic', 'com.newrelic/mcp-server'],
  ['elasticsaerch', 'io.github.cr7258/elasticsearch-mcp-server'],
  ['githb', 'io.github.github/github-mcp-server'],
  ['io.github.upstash/', 'io.github.upstash/context7'],
];

const snapshot = resolve(
  import.meta.dirname,
  '../../../../../shared/data/catalog-official/snapshot-2025-12-18.json',
);

describe.skipIf(!existsSync(snapshot))(
  'the official snapshot (skipped where ../shared/data is absent)',
  () => {
    const entries = (): readonly ServerEntry[] =>
      newestPerName(readServersQuickly(readFileSync(snapshot)) ?? []);

    test('answers the 15 best-known names with the wanted server first, and 30 queries with a mean reciprocal rank of 0.9', () => {
      const all = entries();
      const places = GOLDEN.map(([query, wanted]) => [query, names(all, query).indexOf(wanted) + 1] as const);
      expect(places.slice(0, 15).filter(([, place]) => place !== 1)).toEqual([]);
      const sum = places.reduce((total, [, place]) => total + (place === 0 ? 0 : 1 / place), 0);
      expect([sum / places.length >= 0.9, places.filter(([, place]) => place !== 1)]).toEqual([
        true,
        expect.anything(),
      ]);
    });

    test('does not answer a part of the namespaces that most have', () => {
      const all = entries();
      expect(names(all, 'io').length).toBeLessThan(all.length / 10);
      expect(names(all, 'github').length).toBeLessThan(all.length / 10);
    });
  },
);
