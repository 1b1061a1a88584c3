import { describe, expect, test } from 'vitest';
import { readMessage, requestOf, type Response } from './json-rpc.ts';
import { RepeatedArguments } from './param-headers.ts';

function pageOf(tools: readonly object[]): Response {
  const read = readMessage(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools } }));
  if (typeof read === 'string' || read.kind !== 'response') throw new TypeError();
  return read;
}

const toolWith = (properties: object, name = 't') => ({ name, inputSchema: { type: 'object', properties } });
const text = (header: string, more: object = {}) => ({ type: 'string', 'x-mcp-header': header, ...more });
const headersFor = (tools: readonly object[], args: unknown) => {
  const repeated = new RepeatedArguments();
  repeated.learn(pageOf(tools));
  return repeated.headersFor(requestOf('1', 'tools/call', { name: 't', arguments: args }));
};

describe('arguments that a tool wants repeated', () => {
  test.each<[string, object, object, object]>([
    ['text', { a: text('A') }, { a: 'us-west1' }, { 'Mcp-Param-A': 'us-west1' }],
    ['whole numbers', { a: text('A', { type: 'integer' }) }, { a: 42 }, { 'Mcp-Param-A': '42' }],
    ['yes and no', { a: text('A', { type: 'boolean' }) }, { a: false }, { 'Mcp-Param-A': 'false' }],
    ['what is no plain header', { a: text('A') }, { a: ' é' }, { 'Mcp-Param-A': '=?base64?IMOp?=' }],
    ['what looks wrapped', { a: text('A') }, { a: '=?base64?eA==?=' }, { 'Mcp-Param-A': '=?base64?PT9iYXNlNjQ/ZUE9PT89?=' }],
    ['nothing', { a: text('A') }, { a: '' }, { 'Mcp-Param-A': '=?base64??=' }],
    ['members of members', { o: { type: 'object', properties: { a: text('A') } } }, { o: { a: 'x' } }, { 'Mcp-Param-A': 'x' }],
    ['null, not', { a: text('A') }, { a: null }, {}],
    ['what is not there, not', { a: text('A') }, {}, {}],
    ['numbers that are not safe, not', { a: text('A', { type: 'integer' }) }, { a: 2 ** 53 }, {}],
    ['lists, not', { a: text('A', { type: 'array' }) }, { a: ['x'] }, {}],
    ['under a name that is no header, not', { a: text('A B'), b: text('C\r\nX: y') }, { a: 'x', b: 'y' }, {}],
  ])('are in headers: %s', (_what, properties, args, headers) => {
    expect(headersFor([toolWith(properties)], args)).toEqual(headers);
  }); // prettier-ignore

  test('are those that the newest list says', () => {
    const repeated = new RepeatedArguments();
    const call = requestOf('1', 'tools/call', { name: 't', arguments: { a: 'x' } });
    for (const [properties, headers] of [
      [{ a: text('A') }, { 'Mcp-Param-A': 'x' }],
      [{ a: text('B') }, { 'Mcp-Param-B': 'x' }],
      [{ a: { type: 'string' } }, {}],
    ] as const) {
      repeated.learn(pageOf([toolWith(properties)]));
      expect(repeated.headersFor(call)).toEqual(headers);
    }
  });

  test('are kept of the newest tools, and of none with very long names', () => {
    const repeated = new RepeatedArguments();
    const named = (name: string) => requestOf('1', 'tools/call', { name, arguments: { a: 'x' } });
    const old = Array.from({ length: 10_000 }, (_, at) => toolWith({ a: text('A') }, `t${at}`));
    repeated.learn(pageOf(old));
    const long = 'x'.repeat(2_000);
    repeated.learn(pageOf([toolWith({ a: text('A') }, 'new'), toolWith({ a: text('A') }, long)]));
    expect([repeated.headersFor(named('new')), repeated.headersFor(named(long))]).toEqual([{ 'Mcp-Param-A': 'x' }, {}]);
    expect(headersFor([toolWith({ [long]: text('A') })], { [long]: 'x' })).toEqual({});
  }); // prettier-ignore

  test('are nobody else’s', () => {
    expect(headersFor([toolWith({ a: text('A') }, 'other')], { a: 'x' })).toEqual({});
  });
});
