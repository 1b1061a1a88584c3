import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readMessage, type Response } from '../message/json-rpc.ts';
import { toolView, type ToolSettings } from './tool-view.ts';

function answer(text: string): Response {
  const message = readMessage(text);
  if (typeof message === 'string' || message.kind !== 'response') throw new TypeError(text);
  return message;
}

const shown = (settings: ToolSettings, text: string): string | undefined =>
  toolView(settings).show(answer(text))?.text;
const NAMES = ['a', 'b', 'c', 'd', '__proto__', 'toString', 'é"\\'];
const rename = { overrides: { read: { name: 'look', description: 'Looks "around"' } } };

describe('a list of tools', () => {
  test.each<[string, ToolSettings, string, string]>([
    [
      'keeps all but what is hidden, to the character',
      { filter: ['b'] },
      '{"jsonrpc":"2.0","id":9007199254740993,"result":{"ttlMs":1.0, "tools" : [{"name":"a"}, {"title":"\\u0042", "name":"b","_meta":{"x":1e2}}],"nextCursor":"n","_meta":{}}}',
      '{"jsonrpc":"2.0","id":9007199254740993,"result":{"ttlMs":1.0, "tools" : [{"title":"\\u0042", "name":"b","_meta":{"x":1e2}}],"nextCursor":"n","_meta":{}}}',
    ],
    [
      'renames and describes',
      rename,
      '{"jsonrpc":"2.0","id":"1","result":{"tools":[{"name":"read","description":"Reads","inputSchema":{"name":"read"}}]}}',
      '{"jsonrpc":"2.0","id":"1","result":{"tools":[{"name":"look","description":"Looks \\"around\\"","inputSchema":{"name":"read"}}]}}',
    ],
    [
      'describes what had no description',
      { overrides: { read: { description: 'x' } } },
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"r\\u0065ad"}]}}',
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","description":"x"}]}}',
    ],
    [
      'filters by the names that clients see',
      { ...rename, filter: ['read', 'other'] },
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read"},{"name":"other"}],"nextCursor":"n"}}',
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"other"}],"nextCursor":"n"}}',
    ],
    [
      'hides a tool whose name another one has',
      rename,
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"look"}]}}',
      '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}',
    ],
    ['leaves an error as it is', rename, '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}', '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'],
    ['leaves a result without tools as it is', rename, '{"jsonrpc":"2.0","id":1,"result":{}}', '{"jsonrpc":"2.0","id":1,"result":{}}'],
  ])('%s', (_name, settings, text, expected) => {
    expect(shown(settings, text)).toBe(expected);
  }); // prettier-ignore

  test.each([
    '{"tools":[{"title":"x"}]}',
    '{"tools":[{"name":7}]}',
    '{"tools":["read"]}',
    '{"tools":{"name":"secret"}}',
    '{"tools":[{"name":"a","name":"secret"}]}',
    '{"tools":[],"tools":[{"name":"secret"}]}',
  ])('is withheld where it cannot be understood: %s', (result) => {
    expect(shown({ filter: ['a'] }, `{"jsonrpc":"2.0","id":"x","result":${result}}`)).toBeUndefined();
  });

  test('shows exactly the tools that can be called, and each is called by its own name', () => {
    const name = fc.constantFrom(...NAMES);
    const override = fc
      .record(
        { name: fc.constantFrom('x', 'y', 'a', 'b'), description: fc.constantFrom('one', '') },
        { requiredKeys: [] },
      )
      .filter((one) => Boolean(one.name) || Boolean(one.description));
    const settings = fc.record({
      filter: fc.option(fc.array(fc.oneof(name, fc.constantFrom('x', 'y'))), { nil: undefined }),
      overrides: fc.array(fc.tuple(name, override)).map((all) => Object.fromEntries(all)),
    });
    fc.assert(
      fc.property(settings, fc.uniqueArray(name), (given, names) => {
        const displayed = Object.entries(given.overrides).map(([real, one]) => one.name ?? real);
        fc.pre(new Set(displayed).size === displayed.length);
        const view = toolView(given);
        const tools = names.map((one) => ({ name: one, inputSchema: { real: one } }));
        const text =
          view.show(answer(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools } })))?.text ?? '';
        const seen: { name: string; inputSchema: { real: string } }[] = JSON.parse(text).result.tools;
        for (const tool of seen) {
          expect(view.realName(tool.name)).toBe(tool.inputSchema.real);
          expect(given.filter === undefined || given.filter.includes(tool.name)).toBe(true);
        }
        expect(new Set(seen.map((tool) => tool.name)).size).toBe(seen.length);
        expect(names.filter((one) => view.offers(one))).toEqual(seen.map((tool) => tool.inputSchema.real));
        const callable = [...NAMES, 'x', 'y'].filter((one) => {
          const real = view.realName(one);
          return real !== undefined && names.includes(real);
        });
        expect(new Set(seen.map((tool) => tool.name))).toEqual(new Set(callable));
      }),
    );
  });
});

describe('settings that contradict themselves are refused', () => {
  test.each<[string, ToolSettings]>([
    ['two tools of one name', { overrides: { a: { name: 'x' }, b: { name: 'x' } } }],
    ['the name of another overridden tool', { overrides: { a: { name: 'b' }, b: { description: 'x' } } }],
    ['an empty name', { overrides: { '': { name: 'x' } } }],
    ['an empty name in the filter', { filter: [''] }],
    ['an override of nothing', { overrides: { a: { name: '', description: '' } } }],
  ])('%s', (_name, settings) => {
    expect(() => toolView(settings)).toThrow(expect.objectContaining({ code: 'usage/invalid-value' }));
  });
});
