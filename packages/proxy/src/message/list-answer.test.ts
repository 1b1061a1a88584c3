import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { readMessage, type Response } from './json-rpc.ts';
import { ListReader, readList } from './list-answer.ts';

function answer(text: string): Response {
  const message = readMessage(text);
  if (typeof message === 'string' || message.kind !== 'response') throw new TypeError(text);
  return message;
}

test('an answer with some of its items is the same answer without the others', () => {
  const item = fc.record({ name: fc.string(), x: fc.jsonValue() }, { requiredKeys: ['name'] });
  const result = fc.record(
    {
      _meta: fc.dictionary(fc.string(), fc.jsonValue()),
      tools: fc.array(fc.tuple(item, fc.boolean())),
      nextCursor: fc.string(),
      cacheScope: fc.constantFrom('public', 'private'),
    },
    { requiredKeys: ['tools'] },
  );
  fc.assert(
    fc.property(result, fc.constantFrom('"i"', '7'), fc.constantFrom(0, 2), (said, id, indent) => {
      const whole = { ...said, tools: said.tools.map(([tool]) => tool) };
      const text = `{"result":${JSON.stringify(whole, null, indent)},"jsonrpc":"2.0","id":${id}}`;
      const read = readList(answer(text), 'tools');
      expect(read?.items.map((one) => JSON.parse(one))).toEqual(JSON.parse(JSON.stringify(whole.tools)));
      const shown = read?.with(said.tools.map(([, kept]) => kept));
      const kept = said.tools.flatMap(([tool, isKept]) => (isKept ? [tool] : []));
      const scope = said.cacheScope === undefined ? {} : { cacheScope: 'private' };
      expect(JSON.parse(shown?.text ?? '')).toEqual(
        JSON.parse(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(id), result: { ...whole, ...scope, tools: kept } })),
      );
      expect(shown).toMatchObject({ kind: 'response', id });
      // As if it had come so.
      const { idSpan, value } = shown ?? answer('');
      expect({ idSpan, value }).toEqual({ idSpan: answer(shown?.text ?? '').idSpan, value: answer(shown?.text ?? '').value });
    }),
  );
}); // prettier-ignore

test('every other character stays', () => {
  const text =
    '{"jsonrpc":"2.0","id":1,"result":{ "a":1e2,"tools":[ {"name":"x" }, {"n":1.0} ],"b":"\\u0041"}}';
  expect(readList(answer(text), 'tools')?.with([false, true])?.text).toBe(
    '{"jsonrpc":"2.0","id":1,"result":{ "a":1e2,"tools":[{"n":1.0}],"b":"\\u0041"}}',
  );
  expect(readList(answer(text), 'tools')?.with([true, true])?.text).toBe(text);
});

test.each(['{}', '{"tools":7}', '{"tools":[],"tools":[]}', '[]'])('there is no list in %s', (result) => {
  expect(readList(answer(`{"jsonrpc":"2.0","id":1,"result":${result}}`), 'tools')).toBeUndefined();
});

test('a list that was told before is read but once, and another one anew', () => {
  const read: string[] = [];
  const reader = new ListReader('tools', (text) => {
    read.push(text);
    return JSON.parse(text) as number;
  });
  const told = (id: number, list: string) =>
    reader.read(answer(`{"id":${id},"jsonrpc":"2.0","result":{"tools":${list}}}`));
  expect(told(1, '[1,2]')?.with([false, true]).text).toContain(
    '"id":1,"jsonrpc":"2.0","result":{"tools":[2]}',
  );
  expect(told(22, '[1,2]')?.with([true, false]).text).toContain(
    '"id":22,"jsonrpc":"2.0","result":{"tools":[1]}',
  );
  expect(told(3, '[3]')?.items).toEqual([3]);
  expect(read).toEqual(['1', '2', '3']);
});
