import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { findServer } from './find.ts';
import { extensionSummary, PUBLISHER_META } from './extension-summary.ts';
import { readCatalogue } from './registry-file.ts';
import { choosePlan, runPlans } from './run-plan.ts';
import { starterServers } from './starter.ts';

const servers = starterServers();
const schemas = resolve(import.meta.dirname, '../../../../../shared/data/schemas');

test('is what reading it as a file gives', () => {
  const { entries, skippedTotal } = readCatalogue(
    readFileSync(resolve(import.meta.dirname, 'starter.json'), 'utf8'),
    { label: 'built-in' },
  );
  expect(skippedTotal).toBe(0);
  expect(servers).toEqual(entries);
});

test('holds at least 15 servers of every kind', () => {
  const kinds = servers.flatMap(({ document }) =>
    runPlans(document).map(({ target }) => ('ecosystem' in target ? target.ecosystem : target.kind)),
  );
  expect(servers.length).toBeGreaterThanOrEqual(15);
  expect(new Set(kinds)).toEqual(new Set(['npm', 'pypi', 'image', 'remote']));
});

test.each([
  ['everything', 'npm', '@modelcontextprotocol/server-everything', '2026.8.31'],
  ['filesystem', 'npm', '@modelcontextprotocol/server-filesystem', '2026.8.31'],
  ['memory', 'npm', '@modelcontextprotocol/server-memory', '2026.8.31'],
  ['sequential-thinking', 'npm', '@modelcontextprotocol/server-sequential-thinking', '2026.8.31'],
  ['context7', 'npm', '@upstash/context7-mcp', '4.1.1'],
  ['fetch', 'pypi', 'mcp-server-fetch', '2026.10.24'],
  ['git', 'pypi', 'mcp-server-git', '2026.10.19'],
  ['time', 'pypi', 'mcp-server-time', '2026.10.19'],
])('%s runs the %s package %s', (query, ecosystem, name, version) => {
  const entry = findServer(servers, query);
  const plan = entry && choosePlan(entry.document, { images: false });
  expect(plan).toMatchObject({ target: { kind: 'package', ecosystem, name, version }, transport: 'stdio' });
});

test('runs everything and the other tool-only servers without any argument, variable or network', () => {
  for (const query of ['everything', 'sequential-thinking']) {
    const entry = findServer(servers, query);
    const plan = entry && choosePlan(entry.document, { images: false });
    expect(plan).toMatchObject({ args: [], missingArgs: [], permissions: { network: { outbound: {} } } });
    expect(plan?.env.filter(({ required }) => required)).toEqual([]);
  }
});

test('asks the filesystem server for its directories instead of guessing one', () => {
  const entry = findServer(servers, 'filesystem');
  expect(entry && runPlans(entry.document)).toMatchObject([
    { args: [], missingArgs: [{ name: 'directory' }] },
  ]);
});

test('pins every package and image, and marks every credential as secret', () => {
  for (const { document } of servers) {
    for (const plan of runPlans(document)) {
      if (plan.target.kind === 'package') expect(plan.target.version).toMatch(/^\d/);
      if (plan.target.kind === 'image') expect(plan.target.reference).toMatch(/:v?\d+\.\d+\.\d+$/);
      for (const { name, secret } of plan.env)
        if (/TOKEN$|_KEY$|SECRET$/.test(name)) expect([name, secret]).toEqual([name, true]);
    }
  }
});

test('names the repository, tier and tags that listings show', () => {
  for (const { document } of servers) {
    const { tags, tier } = extensionSummary(document);
    expect([document.name, tags.length > 0, tier !== undefined]).toEqual([document.name, true, true]);
    expect(document.repository?.url ?? document.websiteUrl).toMatch(/^https:\/\//);
  }
});

describe.skipIf(!existsSync(schemas))('the official schemas (skipped where ../shared/data is absent)', () => {
  const schema = (path: string): object => JSON.parse(readFileSync(resolve(schemas, path), 'utf8'));

  test('accept every document strictly', () => {
    const ajv = new Ajv({ strict: false, validateFormats: false });
    const validate = ajv.compile(schema('mcp/2025-12-11-server.schema.json'));
    for (const { json, name } of servers) {
      validate(JSON.parse(json));
      expect([name, validate.errors]).toEqual([name, null]);
    }
  });

  test('accept every publisher extension strictly', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const validate = ajv.compile(schema('toolhive/publisher-provided.schema.json'));
    for (const { document, name } of servers) {
      validate(document._meta?.[PUBLISHER_META]);
      expect([name, validate.errors]).toEqual([name, null]);
    }
  });
});
