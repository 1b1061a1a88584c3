import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import { eraOf, modernHeaders } from './era.ts';
import { readMessage } from './json-rpc.ts';

const KEY = 'io.modelcontextprotocol/';
const VERSION = { [`${KEY}protocolVersion`]: '2026-07-28' };
const FULL = { ...VERSION, [`${KEY}clientCapabilities`]: {} };
const HEADER = { 'mcp-protocol-version': '2026-07-28' };

const read = (message: object) => {
  const found = readMessage(JSON.stringify({ jsonrpc: '2.0', ...message }));
  if (typeof found === 'string') throw new TypeError(found);
  return found;
};

const era = (headers: Record<string, string>, method: string, params: object) =>
  eraOf(headers, read({ id: 1, method, params }));

/** docs/behaviour/proxy.md#revisions, rule by rule. */
describe('the revision family of a POST', () => {
  test.each([
    ['1 initialize without a signal', {}, 'initialize', {}, 'legacy'],
    ['1 no signal', {}, 'tools/list', {}, 'legacy'],
    ['1 the log level alone', {}, 'tools/list', { _meta: { [`${KEY}logLevel`]: 'debug' } }, 'legacy'],
    [
      '2 a signal under a legacy header',
      { 'mcp-protocol-version': '2025-06-18' },
      'x',
      { _meta: { [`${KEY}clientInfo`]: {} } },
      'legacy',
    ],
    ['7 all there', { ...HEADER, 'mcp-method': 'tools/list' }, 'tools/list', { _meta: FULL }, 'modern'],
    ['7 the body alone', { 'mcp-method': 'tools/list' }, 'tools/list', { _meta: FULL }, 'modern'],
    [
      '7 named',
      { ...HEADER, 'mcp-method': 'tools/call', 'mcp-name': ' greet ' },
      'tools/call',
      { name: 'greet', _meta: FULL },
      'modern',
    ],
    [
      '7 named in base64',
      { ...HEADER, 'mcp-method': 'resources/read', 'mcp-name': '=?base64?w6k6eA==?=' },
      'resources/read',
      { uri: 'é:x', _meta: FULL },
      'modern',
    ],
  ])('%s', (...[, headers, method, params, expected]) => {
    expect(era(headers, method, params)).toEqual({ era: expected });
  });

  test.each([
    ['3 initialize', HEADER, 'initialize', { _meta: FULL }, 'proxy/era-method', undefined],
    ['3 ping, before anything else', HEADER, 'ping', {}, 'proxy/era-method', undefined],
    ['4 header without body', HEADER, 'x', {}, 'proxy/era-params', undefined],
    ['4 neither', {}, 'x', { _meta: { [`${KEY}clientInfo`]: {} } }, 'proxy/era-params', undefined],
    ['4 no capabilities', HEADER, 'x', { _meta: VERSION }, 'proxy/era-params', undefined],
    [
      '4 capabilities that are no object',
      HEADER,
      'x',
      { _meta: { ...VERSION, [`${KEY}clientCapabilities`]: [] } },
      'proxy/era-params',
      undefined,
    ],
    [
      '5 another version in the header, before it is looked at whether it is served',
      HEADER,
      'x',
      { _meta: { ...FULL, [`${KEY}protocolVersion`]: 'v999' } },
      'proxy/era-mismatch',
      { header: '2026-07-28', body: 'v999' },
    ],
    [
      '5 header differs',
      { 'mcp-protocol-version': '2025-06-18' },
      'x',
      { _meta: FULL },
      'proxy/era-mismatch',
      { header: '2025-06-18', body: '2026-07-28' },
    ],
    [
      '6 another version',
      { 'mcp-protocol-version': 'v999' },
      'x',
      { _meta: { ...FULL, [`${KEY}protocolVersion`]: 'v999' } },
      'proxy/era-version',
      { supported: ['2026-07-28'], requested: 'v999' },
    ],
    [
      'method header missing',
      HEADER,
      'tools/call',
      { _meta: FULL },
      'proxy/era-mismatch',
      { header: '', body: 'tools/call' },
    ],
    [
      'method header differs',
      { ...HEADER, 'mcp-method': 'tools/list' },
      'tools/call',
      { _meta: FULL },
      'proxy/era-mismatch',
      { header: 'tools/list', body: 'tools/call' },
    ],
    [
      'name header missing',
      { ...HEADER, 'mcp-method': 'tools/call' },
      'tools/call',
      { name: 'greet', _meta: FULL },
      'proxy/era-mismatch',
      { header: '', body: 'greet' },
    ],
    [
      'name header differs',
      { ...HEADER, 'mcp-method': 'tools/call', 'mcp-name': 'Greet' },
      'tools/call',
      { name: 'greet', _meta: FULL },
      'proxy/era-mismatch',
      { header: 'Greet', body: 'greet' },
    ],
  ])('%s is refused', (...[, headers, method, params, code, data]) => {
    expect(era(headers, method, params)).toEqual({ era: 'rejected', code, data });
  });

  test('an endpoint without the modern revision names those that it has', () => {
    const message = read({ id: 1, method: 'x', params: { _meta: FULL } });
    expect(eraOf({ ...HEADER, 'mcp-method': 'x' }, message, ['2025-11-25'])).toEqual({
      era: 'rejected',
      code: 'proxy/era-version',
      data: { supported: ['2025-11-25'], requested: '2026-07-28' },
    });
  });

  test('a notification needs no envelope, and an answer goes by its header', () => {
    const cancelled = read({ method: 'notifications/cancelled', params: { requestId: 1 } });
    expect([eraOf(HEADER, cancelled), eraOf({}, cancelled)]).toEqual([{ era: 'modern' }, { era: 'legacy' }]);
    const answer = read({ id: 1, result: {} });
    expect([eraOf(HEADER, answer), eraOf({}, answer)]).toEqual([{ era: 'modern' }, { era: 'legacy' }]);
  });
});

test('the headers of a modern request are those that its reader expects, whatever its name', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('tools/call', 'prompts/get', 'x/y'),
      anyText({ minLength: 1 }),
      (method, name) => {
        const message = read({ id: 1, method, params: { name, _meta: FULL } });
        if (message.kind === 'response') throw new TypeError('no request');
        const headers = Object.entries(modernHeaders(message)).map(([key, value]) => [
          key.toLowerCase(),
          value,
        ]);
        expect(eraOf(Object.fromEntries(headers), message)).toEqual({ era: 'modern' });
      },
    ),
  );
});

test('any headers and any params are decided, and what is modern has both members', () => {
  const meta = fc.dictionary(
    fc.constantFrom(`${KEY}protocolVersion`, `${KEY}clientCapabilities`, `${KEY}clientInfo`, 'x'),
    fc.oneof(fc.constant('2026-07-28'), fc.constant({}), fc.jsonValue()),
  );
  const value = fc.constantFrom('2026-07-28', '2025-11-25', 'v999', '');
  fc.assert(
    fc.property(fc.option(value, { nil: undefined }), meta, (version, _meta) => {
      const headers = {
        'mcp-method': 'x',
        ...(version !== undefined && { 'mcp-protocol-version': version }),
      };
      const verdict = era(headers, 'x', { _meta });
      if (verdict.era !== 'modern') return;
      expect(_meta).toMatchObject({
        [`${KEY}protocolVersion`]: '2026-07-28',
        [`${KEY}clientCapabilities`]: {},
      });
    }),
  );
});
