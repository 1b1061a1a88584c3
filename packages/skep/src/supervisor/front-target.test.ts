import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readFrontTarget, rememberingFrontTargets } from './front-target.ts';

describe('the workload that a request at the front door is for', () => {
  test.each([
    ['/memory/mcp', 'memory', '/mcp'],
    ['/memory/', 'memory', '/'],
    ['/memory/mcp?a=%2F..%2Fother', 'memory', '/mcp?a=%2F..%2Fother'],
    ['/memory/messages/?session_id=1', 'memory', '/messages/?session_id=1'],
    ['/memory/a%20b/c', 'memory', '/a%20b/c'],
    ['/Memory/mcp', 'Memory', '/mcp'],
    ['/memory./mcp', 'memory.', '/mcp'],
    ['/health/health', 'health', '/health'],
    ['http://127.0.0.1:4243/memory/mcp', 'memory', '/mcp'],
    ['HTTP://evil.example/memory/mcp', 'memory', '/mcp'],
  ])('%s', (url, name, target) => {
    expect(readFrontTarget(url)).toMatchObject({ name, target: { target } });
  });

  test('the host of an absolute target goes with it, to be judged', () => {
    expect(readFrontTarget('http://evil.example/memory/mcp')?.target.authority).toBe('evil.example');
  });

  test.each([
    '',
    '*',
    '/',
    '/memory',
    '/memory?/mcp',
    '//memory/mcp',
    '///memory/mcp',
    '/memory//mcp',
    '/memory/./mcp',
    '/memory/../other/mcp',
    '/memory/%2e%2e/other/mcp',
    '/memory/.%2E/other/mcp',
    '/memory/..%2fother/mcp',
    '/memory/..\\other/mcp',
    '/memory/%5c../other/mcp',
    '/memory\\mcp',
    '/./memory/mcp',
    '/../memory/mcp',
    '/mem%6Fry/mcp',
    '/memory%2Fmcp',
    '/memory%00/mcp',
    '/memory\t/mcp',
    '/memory /mcp',
    '/memory;x=1/mcp',
    '/mem..ory/mcp',
    '/.well-known/mcp',
    '/-memory/mcp',
    '/m/mcp',
    `/${'m'.repeat(101)}/mcp`,
    '/memory#/mcp',
    '/memory/mcp#x',
    '/mémoire/mcp',
    '/memory\u2215mcp/mcp',
    'memory/mcp',
    'https://127.0.0.1:4243/memory/mcp',
    'http:///memory',
    'http://127.0.0.1:4243',
    'http://127.0.0.1:4243//memory/mcp',
    'file:///memory/mcp',
    '127.0.0.1:4243',
  ])('nobody is asked with %j', (url) => {
    expect(readFrontTarget(url)).toBeUndefined();
  });

  const piece = fc.oneof(
    fc.constantFrom(
      '/',
      '//',
      '.',
      '..',
      '%2e',
      '%2F',
      '%5c',
      '\\',
      '?',
      '#',
      ';',
      '%',
      ':',
      '@',
      '&',
      '%00',
    ),
    fc.constantFrom('memory', 'other', 'mcp', 'http://', 'HTTP://127.0.0.1'),
    fc.string({ unit: 'grapheme', maxLength: 3 }),
  );
  const hostile = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`);

  test('whoever else reads the path, decoded or not, finds the same workload and the same rest', () => {
    fc.assert(
      fc.property(hostile, (url) => {
        const found = readFrontTarget(url);
        if (found === undefined) return;
        const { pathname, search } = new URL(url, 'http://127.0.0.1:4243');
        expect(pathname.split('/')[1]).toBe(found.name);
        expect(`/${found.name}${found.target.target}`).toBe(url);
        expect(`${pathname}${search}`).toBe(url.replace(/\?$/u, ''));
        let decoded = pathname;
        try {
          decoded = decodeURIComponent(pathname);
        } catch {
          // Nobody can decode it.
        }
        expect(
          new URL(`http://127.0.0.1:4243${decoded.replaceAll(/[?#]/gu, '_')}`).pathname.split('/')[1],
        ).toBe(found.name);
      }),
      { numRuns: 2_000 },
    );
  });

  test('is the same whatever was asked for before, and however often', () => {
    const read = rememberingFrontTargets();
    const usual = fc.constantFrom('/memory/mcp', '/other/mcp', '/memory//mcp');
    fc.assert(
      fc.property(fc.oneof(usual, hostile), (url) => {
        for (const found of [read(url), read(url)]) expect(found).toEqual(readFrontTarget(url));
      }),
      { numRuns: 2_000 },
    );
    for (let n = 0; n < 2_000; n += 1) {
      const url = `/memory-${n}/mcp?${'a'.repeat(n)}`;
      for (const found of [read(url), read(url)]) expect(found).toEqual(readFrontTarget(url));
    }
  });
});
