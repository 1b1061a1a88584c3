import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { listTools, type AskServer } from './list-tools.ts';

const signal = new AbortController().signal;
const answer = (result: unknown): string => JSON.stringify({ jsonrpc: '2.0', id: '0', result });
const tool = (name: string): object => ({ name, inputSchema: { type: 'object' } });

/** A server with these answers, one for each page; what it was asked is written down. */
function pages(...answers: readonly string[]): { readonly ask: AskServer; readonly asked: unknown[] } {
  const asked: unknown[] = [];
  const ask: AskServer = async (method, params) => {
    asked.push({ method, ...params });
    return answers[asked.length - 1] ?? answers.at(-1) ?? '';
  };
  return { ask, asked };
}

describe('the tools of a server', () => {
  test('are asked for page by page', async () => {
    const { ask, asked } = pages(
      answer({ tools: [tool('a'), tool('b')], nextCursor: 'x' }),
      answer({ tools: [tool('c')] }),
    );
    const { tools, complete } = await listTools(ask, signal);
    expect(tools.map(({ name }) => name)).toEqual(['a', 'b', 'c']);
    expect(complete).toBe(true);
    expect(asked).toEqual([{ method: 'tools/list' }, { method: 'tools/list', cursor: 'x' }]);
  });

  test('have a digest of all that is said of them, whatever the order of members', async () => {
    const one = '{"name":"a","description":"d","inputSchema":{"x":1,"y":{"b":[{"q":1,"p":2}],"a":0}}}';
    const same = '{"inputSchema":{"y":{"a":0,"b":[{"p":2,"q":1}]},"x":1},"description":"d","name":"a"}';
    const other = one.replace('"q":1', '"q":2');
    const digests = await Promise.all(
      [one, same, other].map(async (text) => {
        const { tools } = await listTools(
          pages(`{"jsonrpc":"2.0","id":0,"result":{"tools":[${text}]}}`).ask,
          signal,
        );
        return tools[0]?.digest;
      }),
    );
    expect(digests[0]).toBe(digests[1]);
    expect(digests[0]).not.toBe(digests[2]);
    const canonical = '{"description":"d","inputSchema":{"x":1,"y":{"a":0,"b":[{"p":2,"q":1}]}},"name":"a"}';
    expect(digests[0]).toBe(createHash('sha256').update(canonical).digest('hex'));
  });
});

describe('a hostile server', () => {
  test('with cursors without end is asked a hundred times', async () => {
    let page = 0;
    const ask: AskServer = async () => answer({ tools: [tool(`t${(page += 1)}`)], nextCursor: `${page}` });
    const { tools, complete } = await listTools(ask, signal);
    expect([tools.length, complete]).toEqual([100, false]);
  });

  test('that repeats a cursor is asked no more', async () => {
    const { ask, asked } = pages(answer({ tools: [tool('a')], nextCursor: 'x' }));
    expect((await listTools(ask, signal)).complete).toBe(false);
    expect(asked).toHaveLength(2);
  });

  test('with more tools than anybody has is believed the first thousand', async () => {
    const many = Array.from({ length: 5000 }, (_, index) => tool(`t${index}`));
    const { tools, complete } = await listTools(pages(answer({ tools: many })).ask, signal);
    expect([tools.length, complete]).toEqual([1000, false]);
  });

  test('with a description of a megabyte has a heavy tool, and of three megabytes none', async () => {
    const heavy = (megabytes: number) =>
      pages(answer({ tools: [{ name: 'a', description: 'x'.repeat(megabytes * 2 ** 20) }] })).ask;
    expect((await listTools(heavy(1), signal)).tools).toMatchObject([{ name: 'a', tokens: 262_152 }]);
    expect(await listTools(heavy(3), signal)).toEqual({ tools: [], complete: false });
  });

  test.each([
    ['no JSON', 'x'],
    ['an error', '{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}'],
    ['no list', answer({ tools: { a: 1 } })],
    ['nothing', ''],
    [
      'nothing but depth',
      `{"jsonrpc":"2.0","id":0,"result":{"tools":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`,
    ],
  ])('that answers with %s has no listing', async (_what, text) => {
    expect(await listTools(pages(text).ask, signal)).toEqual({ tools: [], complete: false });
  });

  test('with elements of wrong types has the tools among them, by a name of bounded length', async () => {
    const odd = [null, 1, 'a', { name: 7 }, [], { name: 'x'.repeat(5000), description: 3 }, tool('b')];
    const { tools } = await listTools(pages(answer({ tools: odd })).ask, signal);
    expect(tools.map(({ name }) => name)).toEqual(['x'.repeat(200), 'b']);
  });

  test('that never answers is waited for no longer than its time, and what it said before counts', async () => {
    const answers = [Promise.resolve(answer({ tools: [tool('a')], nextCursor: 'x' }))];
    const listing = await listTools(() => answers.shift() ?? new Promise(() => {}), signal, 20);
    expect([listing.tools.length, listing.complete]).toEqual([1, false]);
  });

  test('that fails, or never answers until the start is cancelled, is no more than that', async () => {
    expect(await listTools(() => Promise.reject(new TypeError('lost')), signal)).toEqual({
      tools: [],
      complete: false,
    });
    const cancelled = new AbortController();
    const listing = listTools(() => {
      queueMicrotask(() => cancelled.abort(new Error('cancelled')));
      return new Promise(() => {});
    }, cancelled.signal);
    await expect(listing).rejects.toThrow('cancelled');
  });

  test('with any JSON for an answer breaks nothing', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (tools, nextCursor) => {
        const listing = await listTools(pages(answer({ tools, nextCursor })).ask, signal);
        expect(listing.tools.every(({ digest }) => /^[0-9a-f]{64}$/.test(digest))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});
