import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { expect, test } from 'vitest';
import type { Call } from '../../call/call.ts';
import type { Item } from './list-items.ts';
import { ServerTools } from './server-tools.ts';

const CALL = {} as Call;
const SAFE = { readOnlyHint: true };
const tool = (name: string, annotations?: object) => ({ name, ...(annotations && { annotations }) });

type Page = () => { readonly tools: readonly object[]; readonly nextCursor?: string };

/** A server that answers with these pages, one after another, and the last one from then on. */
function serverOf(pages: readonly Page[], transport: 'stdio' | 'streamable-http' = 'streamable-http') {
  let asked = 0;
  const ask = async (): Promise<string> => {
    const page = pages[Math.min(asked, pages.length - 1)];
    asked += 1;
    return JSON.stringify({ jsonrpc: '2.0', id: 0, result: page?.() });
  };
  const tools = new ServerTools({ ask, clock: manualClock(), transport });
  return { tools, asked: () => asked };
}

test('what one principal was told of a tool says nothing of it to another', async () => {
  const { tools } = serverOf([() => ({ tools: [tool('run', SAFE)] }), () => ({ tools: [tool('run')] })]);
  expect(await tools.hintsOf('run', CALL, 'alice')).toEqual(SAFE);
  expect(await tools.hintsOf('run', CALL, 'bob')).toEqual({});
  expect(await tools.hintsOf('run', CALL, 'alice')).toEqual(SAFE);
});

test('a server behind a pipe tells all the same, and is asked once', async () => {
  const { tools, asked } = serverOf([() => ({ tools: [tool('run', SAFE)] })], 'stdio');
  for (const who of ['alice', 'bob']) expect(await tools.hintsOf('run', CALL, who)).toEqual(SAFE);
  expect(asked()).toBe(1);
});

test('a list that was asked for before the tools became others counts for nothing', async () => {
  const changing = (): ReturnType<Page> => {
    it.tools.forget();
    return { tools: [tool('run', SAFE)] };
  };
  const it = serverOf([changing, () => ({ tools: [tool('run')] })]);
  expect(await it.tools.hintsOf('run', CALL, 'a')).toEqual({});
  expect(await it.tools.hintsOf('run', CALL, 'a')).toEqual({});
  expect(it.asked()).toBe(2);
});

test('a tool of a page that came before the change is not taken for one that says nothing', async () => {
  const it = serverOf([
    () => ({ tools: [tool('run', { destructiveHint: true })], nextCursor: 'c' }),
    () => {
      it.tools.forget();
      return { tools: [] };
    },
    () => ({ tools: [tool('run', { destructiveHint: true })] }),
  ]);
  expect(await it.tools.hintsOf('run', CALL, 'a')).toEqual({ destructiveHint: true });
});

test('of a server whose tools are others each time nobody knows anything', async () => {
  const it = serverOf([
    () => {
      it.tools.forget();
      return { tools: [tool('run', SAFE)] };
    },
  ]);
  expect(await it.tools.hintsOf('run', CALL, 'a')).toBeUndefined();
  expect(it.asked()).toBe(2);
});

test('a list of a client that was asked for before the change counts for nothing', async () => {
  const { tools, asked } = serverOf([() => ({ tools: [tool('run')] })]);
  const before = tools.generation;
  tools.forget();
  tools.heard([{ kind: 'tool', id: 'run', hints: SAFE }], 'a', before);
  expect(await tools.hintsOf('run', CALL, 'a')).toEqual({});
  tools.heard([{ kind: 'tool', id: 'run', hints: SAFE }], 'a', tools.generation);
  expect([await tools.hintsOf('run', CALL, 'a'), asked()]).toEqual([SAFE, 1]);
});

test('no tool of a very long name is known', async () => {
  const name = 'x'.repeat(2_000);
  const { tools } = serverOf([() => ({ tools: [tool(name, SAFE)] })]);
  expect(await tools.hintsOf(name, CALL, 'a')).toBeUndefined();
});

test('as much is remembered as fits, of whom it was heard last', async () => {
  const { tools, asked } = serverOf([() => ({ tools: [] })]);
  const long = (_: unknown, at: number): Item => ({ kind: 'tool', id: `${at}`.padEnd(1_000, 'x') });
  const items = Array.from({ length: 10_000 }, long);
  for (const who of ['a', 'b']) tools.heard(items, who, tools.generation);
  const [{ id } = { id: '' }] = items;
  await tools.hintsOf(id, CALL, 'b');
  expect(asked()).toBe(0);
  await tools.hintsOf(id, CALL, 'a');
  expect(asked()).toBe(1);
});

test('what keeps the server from answering is told', async () => {
  const ask = (): Promise<string> => Promise.reject(new SkepError('proxy/backend-away'));
  const tools = new ServerTools({ ask, clock: manualClock(), transport: 'stdio' });
  await expect(tools.hintsOf('run', CALL, 'a')).rejects.toMatchObject({ code: 'proxy/backend-away' });
});
